/* SPDX-License-Identifier: MIT */
/* spoolcat --records: every record in file order, one line, lossless. */
#ifndef SPOOLCAT_RECORDS_H
#define SPOOLCAT_RECORDS_H

#include "views.h"

view_fn records_print;

#endif

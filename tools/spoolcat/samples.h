/* SPDX-License-Identifier: MIT */
/* spoolcat --samples: every sample with its stack, while the input is read. */
#ifndef SPOOLCAT_SAMPLES_H
#define SPOOLCAT_SAMPLES_H

#include "views.h"

view_fn samples_print;

#endif

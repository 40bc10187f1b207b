#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# All C files are laid out by .clang-format.
exec "$SRC/scripts/format" --check

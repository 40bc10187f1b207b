#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Signals at each instruction, jumps, exceptions and stacks that are switched: no frame that is not there, and a stack
# that cannot be whole is not called so.
# shellcheck source=_step.sh
. "$(dirname "$0")/_step.sh"

# R1 and R11: a handler, and another in it, at each instruction of prologues, epilogues and linkage stubs, handlers and
# the way back from them included; realigned frames in both. That way has no unwind data in musl and others.
build hard_signals hard_signals.c gcc -Wl,-z,lazy
step --signals --visits 1 ./hard_signals same
build hard_signals hard_signals.c gcc -Wl,-z,now # without the dynamic linker's work
for case in musl short inside; do
    step --signals --visits 1 ./hard_signals $case
done
# What lies on another stack was not copied.
step --signals --visits 1 --least 80 --most 90 ./hard_signals below
step --signals --visits 1 --least 80 --most 90 ./hard_signals above

build hard_stacks hard_stacks.c gcc
step --least 99.5 ./hard_stacks jumps
step --least 85 ./hard_stacks jumps-elsewhere
step --least 70 --most 80 ./hard_stacks contexts
for case in switch-told switch-garbage switch-data switch-code; do
    step --least 80 ./hard_stacks $case
done
step --least 90 ./hard_stacks switch # that the switch has no unwind data is seen in it only

# While libgcc jumps it has overwritten the frames between.
build hard_throw hard_throw.cc g++
step --gaps 2 --least 97 ./hard_throw
exit $bad

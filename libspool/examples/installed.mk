# SPDX-License-Identifier: MIT
# The examples over the installed package: make, or for one of them
#     cc -o live_top live_top.c $(pkg-config --cflags --libs libspool libsym)
PROGRAMS = stack_histogram live_top custom_symbolizer

CFLAGS ?= -O2 -g -Wall -Wextra
CPPFLAGS += $(shell pkg-config --cflags libspool librecord libsym)
LDLIBS += $(shell pkg-config --libs libspool librecord libsym)

all: $(PROGRAMS)
clean:
	rm -f $(PROGRAMS)
.PHONY: all clean

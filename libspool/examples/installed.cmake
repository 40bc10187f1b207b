# SPDX-License-Identifier: MIT
# The examples as a project of their own, over the installed package: cmake -S . -B build && cmake --build build
# A project of yours needs two of these lines: find_package and target_link_libraries.
cmake_minimum_required(VERSION 3.20)
project(spooltools_examples LANGUAGES C)

set(CMAKE_C_STANDARD 11)
find_package(spool 1.0 REQUIRED COMPONENTS record sym) # record brings spool along

foreach(program stack_histogram live_top custom_symbolizer)
    add_executable(${program} ${program}.c)
endforeach()
target_link_libraries(stack_histogram PRIVATE spool::record spool::spool spool::sym)
target_link_libraries(live_top PRIVATE spool::spool spool::sym)
target_link_libraries(custom_symbolizer PRIVATE spool::sym)

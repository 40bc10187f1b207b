# SPDX-License-Identifier: MIT
# Debian packages: cpack in the build folder, or its target `package`. scripts/package builds and packs in one go.
# A component is a package. What is in none of them by its install() rule belongs to the one of its folder
# (CMAKE_INSTALL_DEFAULT_COMPONENT_NAME). scripts/package_files.cmake makes what only packages have.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "spooltools")
if(NOT CPACK_PACKAGE_CONTACT)
    set(CPACK_PACKAGE_CONTACT "spooltools maintainers <maintainers@spooltools.example>")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_STRIP_FILES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE ${PROJECT_NAME})
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/scripts/package_files.cmake)
set(CPACK_SPOOL_STRIP "${CMAKE_STRIP}")
set(CPACK_SPOOL_LIBDIR ${CMAKE_INSTALL_LIBDIR})

# cpack asks dpkg otherwise, which speaks of the machine that builds.
if(CMAKE_CROSSCOMPILING)
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
        set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
    elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
    endif()
endif()

# spool_package(COMPONENT PACKAGE SECTION FIELDS NAME=VALUE... DESCRIPTION text): a package; fields as cpack calls
# them. No semicolons in the text, which would end it.
function(spool_package component package section)
    cmake_parse_arguments(arg "" "DESCRIPTION" "FIELDS" ${ARGN})
    string(TOUPPER ${component} name)
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
    set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package} PARENT_SCOPE)
    set(CPACK_DEBIAN_${name}_PACKAGE_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${name}_DESCRIPTION "${arg_DESCRIPTION}" PARENT_SCOPE)
    foreach(field ${arg_FIELDS})
        string(REGEX MATCH "^([A-Z]+)=(.*)$" matched "${field}")
        set(CPACK_DEBIAN_${name}_PACKAGE_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" PARENT_SCOPE)
    endforeach()
endfunction()

set(abi ${PROJECT_VERSION_MAJOR})
set(suggests "")
if(SPOOL_WITH_DEBUGINFOD)
    set(suggests "SUGGESTS=libdebuginfod1") # loaded when it is asked for
endif()
set(shared "")
foreach(name libspool librecord libsym)
    list(APPEND shared "${name}${abi} (= ${PROJECT_VERSION})")
endforeach()
list(JOIN shared ", " shared)
set(static_needs "libc6-dev, libiberty-dev, zlib1g-dev") # and the .pc files
if(SPOOL_HAVE_LZMA)
    string(APPEND static_needs ", liblzma-dev")
endif()
if(SPOOL_HAVE_ZSTD)
    string(APPEND static_needs ", libzstd-dev")
endif()
if(SPOOL_HAVE_LIBDEFLATE)
    string(APPEND static_needs ", libdeflate-dev")
endif()

set(about_spools "A spool is the file of samples that a CPU stack recorder writes.")
set(CPACK_COMPONENTS_ALL "")
spool_package(libspool libspool${abi} libs DESCRIPTION
"library that reads and writes spools, the samples of CPU profilers
${about_spools}
This library reads them in all versions of the format, plain or gzip'd,
whole, growing or cut off, and writes them.")
spool_package(librecord librecord${abi} libs DESCRIPTION
"library that samples the stacks of running programs
It samples processes and commands by perf_event_open, walks their stacks
by the unwind data of their files, and writes what it finds as a spool,
which libspool reads.")
spool_package(libsym libsym${abi} libs FIELDS ${suggests} DESCRIPTION
"library that finds the names behind sampled addresses
It names functions, inlined functions, files and lines for addresses in
ELF files, the kernel and its modules, and compiled code of interpreters,
out of symbol tables, debug information, perf maps and symbol archives.")
spool_package(libspooltools-dev libspooltools-dev libdevel
    FIELDS "DEPENDS=${shared}, ${static_needs}" "SUGGESTS=spooltools, pkg-config" DESCRIPTION
"recording, reading and naming of CPU profiles - development files
Headers, static libraries, manual pages, pkg-config files and the CMake
package of libspool, librecord and libsym.")
if(SPOOL_BUILD_TOOLS)
    spool_package(spooltools spooltools devel FIELDS ${suggests} DESCRIPTION
"record CPU profiles and turn them into text, pprof and speedscope
spoolrecord samples the stacks of running programs into a spool. spoolcat
shows what is in one. spool2folded, spool2pprof and spool2speedscope
convert it for flame graphs, go tool pprof and the speedscope viewer.
spoolpack collects what names its addresses, to read it elsewhere.")
endif()

# From 3.31 on cpack writes the field.
if(CMAKE_INSTALL_LIBDIR MATCHES "^lib/.")
    foreach(name LIBSPOOL LIBRECORD LIBSYM LIBSPOOLTOOLS-DEV)
        set(CPACK_DEBIAN_${name}_PACKAGE_MULTIARCH same)
    endforeach()
endif()
set(CPACK_DEBIAN_SPOOLTOOLS_PACKAGE_MULTIARCH foreign)

# Which package a program linked to a library depends on, and the trigger that has ldconfig run once for all packages.
# cpack can make the first itself, but then adds scripts that call ldconfig as well.
set(CPACK_SPOOL_SHLIBS "")
foreach(name spool record sym)
    set(shlibs "lib${name} ${abi} lib${name}${abi} (>= ${PROJECT_VERSION})\n")
    string(APPEND CPACK_SPOOL_SHLIBS "${shlibs}")
    set(control ${PROJECT_BINARY_DIR}/control/lib${name})
    file(WRITE ${control}/shlibs "${shlibs}")
    file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
    string(TOUPPER lib${name} component)
    set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA ${control}/shlibs ${control}/triggers)
endforeach()

# Archives of the sources come from git; package_source takes at least no build along.
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_IGNORE_FILES "/\\\\.git/;/\\\\.git$;${PROJECT_SOURCE_DIR}/build")
include(CPack)

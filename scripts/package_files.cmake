# SPDX-License-Identifier: MIT
# Run by cpack over what it has installed, a folder for each component, before it packs them: manual pages are packed
# by gzip, and each package gets its copyright, changelog and dependencies as Debian wants them. Other archives stay as
# they are. Variables that are set here are cpack's.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
set(source ${CMAKE_CURRENT_LIST_DIR}/..)
set(file_mode OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)

file(READ ${source}/LICENSE license)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]*)" matched "${license}")
set(holders "${CMAKE_MATCH_1}")
string(STRIP "${license}" license)
string(REGEX REPLACE "^.*Copyright \\(c\\)[^\n]*\n+" "" license "${license}")
string(REPLACE "\n\n" "\n.\n" license "${license}")
string(REPLACE "\n" "\n " license "${license}")
string(CONCAT copyright
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
    "Upstream-Name: spooltools\n\n"
    "Files: *\nCopyright: ${holders}\nLicense: Expat\n ${license}\n")
string(CONCAT demanglers
    "Comment:\n The programs and libsym contain the demanglers of GNU libiberty, copyright Free\n"
    " Software Foundation, Inc., under the GNU Library General Public License:\n"
    " /usr/share/common-licenses/LGPL-2\n")

find_program(shlibdeps dpkg-shlibdeps)
if(NOT shlibdeps)
    message(FATAL_ERROR "Debian packages need dpkg-shlibdeps (Debian: dpkg-dev)")
endif()
set(libspool ${CPACK_TEMPORARY_DIRECTORY}/libspool${CPACK_PACKAGING_INSTALL_PREFIX}/${CPACK_SPOOL_LIBDIR})
set(architecture "")
if(CPACK_DEBIAN_PACKAGE_ARCHITECTURE)
    set(architecture DEB_HOST_ARCH=${CPACK_DEBIAN_PACKAGE_ARCHITECTURE})
endif()
file(MAKE_DIRECTORY ${CPACK_TEMPORARY_DIRECTORY}/debian) # of which the program reads these
file(WRITE ${CPACK_TEMPORARY_DIRECTORY}/debian/control "")
file(WRITE ${CPACK_TEMPORARY_DIRECTORY}/debian/shlibs.local "${CPACK_SPOOL_SHLIBS}")

string(TIMESTAMP today "%Y-%m-%d" UTC) # by SOURCE_DATE_EPOCH, if that is set
foreach(component ${CPACK_COMPONENTS_ALL})
    string(TOUPPER ${component} name)
    set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})
    set(package ${CPACK_DEBIAN_${name}_PACKAGE_NAME})
    set(doc ${root}/share/doc/${package})
    file(MAKE_DIRECTORY ${doc})
    # Whatever the umask is.
    execute_process(COMMAND find ${root} -type d -exec chmod 755 {} + COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE ${doc}/copyright "${copyright}")
    if(component MATCHES "^(libsym|spooltools)$")
        file(APPEND ${doc}/copyright "${demanglers}")
    endif()
    execute_process(
        COMMAND awk -v "version=${CPACK_PACKAGE_VERSION}" -v "maintainer=${CPACK_PACKAGE_CONTACT}" -v today=${today}
            -f ${CMAKE_CURRENT_LIST_DIR}/package_changelog.awk ${source}/CHANGELOG.md
        OUTPUT_FILE ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
    file(CHMOD ${doc}/copyright ${doc}/changelog PERMISSIONS ${file_mode})

    file(GLOB_RECURSE pages ${root}/share/man/*.[1-9])
    execute_process(COMMAND gzip -n -9 -f ${pages} ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)

    # Not stripped by CMake, because it would take the symbols too.
    file(GLOB_RECURSE archives ${root}/lib/*.a)
    if(archives AND CPACK_SPOOL_STRIP)
        execute_process(COMMAND ${CPACK_SPOOL_STRIP} --strip-debug --enable-deterministic-archives ${archives}
            COMMAND_ERROR_IS_FATAL ANY)
    endif()

    file(GLOB binaries ${root}/bin/* ${root}/${CPACK_SPOOL_LIBDIR}/lib*.so.${CPACK_PACKAGE_VERSION})
    if(binaries)
        set(mark ${CPACK_TEMPORARY_DIRECTORY}/${component}/DEBIAN) # by which it knows a package's folder
        file(MAKE_DIRECTORY ${mark})
        execute_process(
            COMMAND ${CMAKE_COMMAND} -E env ${architecture} ${shlibdeps} -l${libspool} -O ${binaries}
            WORKING_DIRECTORY ${CPACK_TEMPORARY_DIRECTORY}
            OUTPUT_VARIABLE depends OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        file(REMOVE_RECURSE ${mark})
        string(REGEX REPLACE "^shlibs:Depends=" "" CPACK_DEBIAN_${name}_PACKAGE_DEPENDS "${depends}")
    endif()
endforeach()
file(REMOVE_RECURSE ${CPACK_TEMPORARY_DIRECTORY}/debian)

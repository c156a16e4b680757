# Installation: header, libraries, command, pkg-config file, CMake package, manual pages when they are there.
include(CMakePackageConfigHelpers)
install(FILES "${CMAKE_SOURCE_DIR}/include/outrider.h" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS outrider_static DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS outrider_shared EXPORT outrider DESTINATION ${CMAKE_INSTALL_LIBDIR})
get_target_property(outrider_type outrider TYPE)
if(outrider_type STREQUAL "EXECUTABLE")
    install(TARGETS outrider DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(EXPORT outrider NAMESPACE outrider:: FILE outriderTargets.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/outrider)

configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/outriderConfig.cmake.in" "${CMAKE_BINARY_DIR}/outriderConfig.cmake"
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/outrider)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/outriderConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
# The pkg-config file finds its prefix from where it lies, so that an installed tree may be moved.
file(RELATIVE_PATH OUTRIDER_PC_UP "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" OUTRIDER_PC_UP "${OUTRIDER_PC_UP}")
list(JOIN outrider_pc_requires " " OUTRIDER_PC_REQUIRES)
configure_file("${CMAKE_SOURCE_DIR}/cmake/outrider.pc.in" "${CMAKE_BINARY_DIR}/outrider.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/outriderConfig.cmake" "${CMAKE_BINARY_DIR}/outriderConfigVersion.cmake"
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/outrider)
install(FILES "${CMAKE_BINARY_DIR}/outrider.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

file(GLOB manual_pages CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/*.1")
if(manual_pages)
    install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# The embedded pair, where `outrider demo` looks for it beside the executable.
install(DIRECTORY "${CMAKE_SOURCE_DIR}/models/demo/" DESTINATION ${CMAKE_INSTALL_DATADIR}/outrider/demo)

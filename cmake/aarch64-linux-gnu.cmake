# Cross build for 64-bit ARM with Debian's compiler; the tests run under qemu-aarch64. The libraries' arm64 builds lie in the
# folder that tools/arm_packages filled.
set(OUTRIDER_ARM_PACKAGES "" CACHE PATH "Folder that tools/arm_packages filled")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES OUTRIDER_ARM_PACKAGES)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(arm_root "${OUTRIDER_ARM_PACKAGES}/root")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${arm_root}")
set(ENV{PKG_CONFIG_LIBDIR} "${arm_root}/usr/lib/aarch64-linux-gnu/pkgconfig:${arm_root}/usr/share/pkgconfig")
# libcrypto keeps one header in the folder of its architecture.
set(CMAKE_C_FLAGS_INIT "-isystem ${arm_root}/usr/include -isystem ${arm_root}/usr/include/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${arm_root}/usr/lib/aarch64-linux-gnu)

# One folder per instruction set under src/<module>/cpu; its flags are set here and nowhere else.
set(PITH_ISA_FLAGS_scalar "")
set(PITH_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(PITH_ISA_FLAGS_avx2_vnni ${PITH_ISA_FLAGS_avx2} -mavxvnni)
set(PITH_ISA_FLAGS_avx512 -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
set(PITH_ISA_FLAGS_avx512_vnni ${PITH_ISA_FLAGS_avx512} -mavx512vnni -mavx512bf16 -mavx512vbmi)
set(PITH_ISA_FLAGS_amx ${PITH_ISA_FLAGS_avx512_vnni} -mamx-tile -mamx-int8 -mamx-bf16)

# set_isa_flags(SOURCES...): applies the flags of the folder a file lies in, and keeps precompiled headers out.
# Sanitized builds compile kernels at -O3 too: an intrinsic loop at -Og is 20 times slower.
# The intrinsics headers of GCC 12 start results from "undefined" vectors and so trip its uninitialized warnings (GCC bug 105593).
function(set_isa_flags)
  foreach(source IN LISTS ARGN)
    if(source MATCHES "/cpu/([a-z0-9_]+)/[^/]+\\.cc$")
      set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS
                                  "${PITH_ISA_FLAGS_${CMAKE_MATCH_1}};-O3;-Wno-uninitialized;-Wno-maybe-uninitialized"
                                  SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# What an installation is: PREFIX/bin, PREFIX/lib/ulpscope, PREFIX/share/ulpscope; the wheel is the same tree below its package.
#
# Nothing in it knows where it was compiled: the harness finds share/ulpscope from where it lies, the adapters beside it. Components:
#   programs   the harness and the adapters that need no Python framework (LibTorch's and cuBLAS's belong to one machine)
#   tree       the registry, the Python adapters, the records, the cases of the suite; the manual page and what completes in shells
#   python     the Python package, for PREFIX/share/ulpscope/python on PYTHONPATH; a wheel has it by its own name
#   libraries  copies of the shared libraries that the programs need, beyond those that every Linux has
set(programs "")
foreach(name ulpscope ulpscope-emulated ulpscope-recorded ulpscope-openblas)
  if(TARGET ${name})
    # The same path in the build folder, where it leads nowhere: what is installed is the file that was tested.
    set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib/ulpscope"
                          INSTALL_RPATH_USE_LINK_PATH ON)
    # The old kind of tag holds for what a library needs in its turn: OpenBLAS's Fortran.
    target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
    install(TARGETS ${name} RUNTIME DESTINATION bin COMPONENT programs)
    list(APPEND programs ${name})
  endif()
endforeach()

set(no_caches PATTERN "__pycache__" EXCLUDE PATTERN "*.pyc" EXCLUDE)
install(DIRECTORY cases DESTINATION share/ulpscope COMPONENT tree)
install(DIRECTORY backends/jax backends/python backends/torch_compile backends/torch_xla DESTINATION share/ulpscope/backends
        COMPONENT tree ${no_caches})
install(DIRECTORY backends/recorded/data DESTINATION share/ulpscope/backends/recorded COMPONENT tree)
# LibTorch's adapter belongs to one torch: what is installed calls its user's torch from Python, op by op.
file(READ backends/registry.jsonl registry)
set(of_libtorch [=["title": "LibTorch, op by op", "adapter": ["{bin}/ulpscope-torch"], "requires": "{bin}/ulpscope-torch", "install": "ci/setup", "packaged": "from a checkout (LibTorch's adapter is not in the wheel; torch-aot-eager is)",]=])
set(of_python [=["title": "PyTorch, op by op", "adapter": ["{python}", "{root}/backends/torch_compile/eager.py"], "requires": "{root}/backends/torch_compile/eager.py", "python_packages": ["torch"], "install": "ci/setup", "packaged": "pip install torch",]=])
string(FIND "${registry}" "${of_libtorch}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "backends/registry.jsonl has no row of torch-eager as cmake/install.cmake expects it: ${of_libtorch}")
endif()
string(REPLACE "${of_libtorch}" "${of_python}" registry "${registry}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/backends/registry.jsonl)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/installed/registry.jsonl "${registry}")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/installed/registry.jsonl backends/PROTOCOL.md DESTINATION share/ulpscope/backends
        COMPONENT tree)
install(FILES LICENSE NOTICE CHANGELOG.md DESTINATION share/ulpscope COMPONENT tree)
install(DIRECTORY harness/python/ulpscope DESTINATION share/ulpscope/python COMPONENT python ${no_caches})

# What shells and man read, printed by the program itself.
install(CODE "
  set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share\")
  foreach(row \"man/man1/ulpscope.1;man\" \"bash-completion/completions/ulpscope;completion;bash\"
              \"zsh/site-functions/_ulpscope;completion;zsh\")
    list(POP_FRONT row file)
    get_filename_component(folder \${share}/\${file} DIRECTORY)
    file(MAKE_DIRECTORY \${folder})
    message(STATUS \"Installing: \${share}/\${file}\")
    execute_process(COMMAND \"$<TARGET_FILE:ulpscope>\" \${row} OUTPUT_FILE \${share}/\${file} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
" COMPONENT tree)

# Each library under the name by which it is asked for, as one file: wheels have no links.
set(files "")
foreach(name ${programs})
  list(APPEND files "$<TARGET_FILE:${name}>")
endforeach()
list(JOIN files "\" \"" files)
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"${files}\" DIRECTORIES \"${OpenBLAS_LIBRARY_DIRS}\"
       RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
       PRE_EXCLUDE_REGEXES \"^ld-linux\" \"^lib(c|m|dl|rt|pthread|mvec|stdc\\\\+\\\\+|gcc_s)\\\\.so\")
  if(missing)
    message(FATAL_ERROR \"not found: \${missing}\")
  endif()
  foreach(library \${found})
    get_filename_component(name \${library} NAME)
    get_filename_component(file \${library} REALPATH)
    message(STATUS \"library \${name} from \${file}\")
    execute_process(COMMAND \${CMAKE_COMMAND} -E make_directory \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/ulpscope\")
    configure_file(\${file} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/ulpscope/\${name}\" COPYONLY)
  endforeach()
" COMPONENT libraries EXCLUDE_FROM_ALL)

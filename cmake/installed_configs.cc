// SPDX-License-Identifier: Apache-2.0
/// Compiled into programs that link the installed library (install.cmake): where its shipped
/// configurations are, which a static library cannot know before it is installed.
namespace orrery {

__attribute__((weak)) const char* installed_configs() {
  return ORRERY_INSTALLED_CONFIGS;
}

}  // namespace orrery

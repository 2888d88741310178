// SPDX-License-Identifier: Apache-2.0
/// printable() returns the part of a foreign text that is shown: files must not send sequences to
/// the terminal, fake lines or flood a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery {

/// Bytes of the UTF-8 character at the start of `text`, 0 when it is none (RFC 3629, section 4: no
/// overlong forms, no surrogates, nothing above U+10FFFF). ASCII counts, control characters too.
std::size_t utf8_length(std::string_view text);

/// Returns `text` with "\x1b" in place of every control character (C0 except those in `kept`, DEL,
/// C1) and every byte that is not UTF-8, and "\n" in place of a line end.
std::string printable(std::string_view text, std::string_view kept = {});

/// Returns the whole characters of the first `most` bytes, then "..."; `text` itself when it is no
/// longer.
std::string shortened(std::string_view text, std::size_t most);

/// Returns the word, in single quotes when a shell would read anything but itself in it.
std::string shell_quoted(std::string_view word);

}  // namespace orrery

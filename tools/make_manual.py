#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the man page and the bash, zsh and fish completions from the command's own --help.

    tools/make_manual.py BINARY docs/orrery.1.in VERSION FOLDER

It walks `BINARY --help`, `BINARY SUBCOMMAND --help` and so on. The help is laid out by CLI11: headings
end in a colon, an entry is indented by two spaces and names what it is, its text stands to the right or
on the next line. Two headings are our own: "Kinds:" lists the words that the positional may be,
"Examples:" lines of shell.
"""
from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess
import sys

NAME = re.compile(r"-{1,2}[A-Za-z][\w-]*")
CHOICES = re.compile(r"\{([^{}]*)\}")
ALSO = "; also "  # before the other names of an option
LISTED = re.compile(r"`orrery list (\w+)`")
ONE_OF = re.compile(r"(?:.*: )?([\w-]+(?:, [\w-]+)*(?:,| or) [\w-]+)")  # "what to list: plans, models"


@dataclasses.dataclass
class Entry:
    """A flag ("-m", "--machine"), a positional or a subcommand of one command."""
    names: list[str]
    value: str  # what follows a flag, such as "TEXT:{ring,direct} REQUIRED", or ""
    text: str

    @property
    def choices(self) -> list[str]:
        found = CHOICES.search(self.value)
        if found:
            return found[1].split(",")
        listed = None if self.names[0].startswith("-") else ONE_OF.fullmatch(self.text)
        return re.split(", | or ", listed[1]) if listed else []

    @property
    def words(self) -> str:
        """What a shell offers as the value: the choices, or the names that the command lists."""
        listed = LISTED.search(self.text)
        if listed:
            return f"$(orrery list {listed[1]} 2>/dev/null | cut -d' ' -f1)"
        return " ".join(self.choices)


@dataclasses.dataclass
class Command:
    path: list[str]  # ["orrery", "show", "machine"]
    summary: str
    options: list[Entry]
    positionals: list[Entry]
    subcommands: list[Entry]
    kinds: list[Entry]
    examples: list[str]

    @property
    def name(self) -> str:
        return " ".join(self.path)


def parse_entry(line: str) -> Entry:
    left, _, text = line.strip().partition("  ")
    if not left.startswith("-"):
        name, _, value = left.partition(" ")
        return Entry([name], value.strip(), text.strip())
    names, _, value = left.partition(" ")
    return Entry(NAME.findall(names), value.strip(), text.strip())


def parse_help(path: list[str], text: str) -> Command:
    command = Command(path, "", [], [], [], [], [])
    places = {"Subcommands:": command.subcommands, "Positionals:": command.positionals,
              "Kinds:": command.kinds}
    heading, last = "", None
    for line in filter(str.strip, text.splitlines()):
        if not line.startswith(" "):
            heading, last = line.strip(), None
            command.summary = command.summary or heading
        elif heading == "Examples:":
            command.examples.append(line.strip())
        elif line.startswith("   ") and last:
            last.text = f"{last.text} {line.strip()}".strip()
        elif line.strip().startswith("-") or heading in places:
            last = parse_entry(line)
            places.get(heading, command.options).append(last)
    for option in command.options:
        option.text, _, others = option.text.partition(ALSO)
        option.names += NAME.findall(others)
    return command


def walk(binary: str, path: list[str]) -> list[Command]:
    """The command and everything below it, in the order of the help."""
    run = subprocess.run([binary, *path[1:], "--help"], capture_output=True, text=True, check=True)
    command = parse_help(path, run.stdout)
    return [command] + [c for sub in command.subcommands for c in walk(binary, path + sub.names)]


def roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def breakable(text: str) -> str:
    """A list of choices, which may go on in the next line after a comma."""
    return roff(text).replace(",", ",\\:")


def man_page(commands: list[Command], template: str, version: str) -> str:
    lines = []
    for command in commands:
        title = " ".join(command.path[1:]) or "For every command"
        lines += [f".SS {roff(title)}", roff(command.summary)]
        for entry in command.subcommands + command.positionals + command.kinds + command.options:
            names = ", ".join(f"\\fB{roff(name)}\\fR" for name in entry.names)
            lines += [".TP", f"{names} {breakable(entry.value)}".strip(), roff(entry.text)]
        if command.examples:
            lines += [".PP", ".nf", *map(roff, command.examples), ".fi"]
    return template.replace("@VERSION@", version).replace("@COMMANDS@", "\n".join(lines))


def words_of(command: Command) -> list[str]:
    """What can follow the command's name. `help` is no command of its own."""
    entries = command.subcommands + command.kinds + command.options
    words = [word for entry in entries for word in entry.names]
    words += [word for entry in command.positionals for word in entry.choices or [entry.words] if word]
    return list(dict.fromkeys(words + ["help"] * (len(command.path) == 1)))


def shell_cases(commands: list[Command], reply: str) -> tuple[str, str, str]:
    """Case lines: steps to a subcommand, values of flags, words of commands; `reply` has {} for words.
    The variable is `at` because zsh keeps `path` for $PATH."""
    steps = "\n".join(f'    "{c.name}") at="{c.name}" ;;' for c in commands[1:])
    values = "\n".join(
        f'    "{c.name} {name}") {reply.format(entry.words)}; return ;;'
        for c in commands for entry in c.options + c.kinds for name in entry.names if entry.words)
    words = "\n".join(f'    "{c.name}") {reply.format(" ".join(words_of(c)))} ;;' for c in commands)
    return steps, values, words


def bash_completion(commands: list[Command]) -> str:
    steps, values, words = shell_cases(commands, 'COMPREPLY=($(compgen -W "{}" -- "$current"))')
    return f"""# bash completion for orrery, made by tools/make_manual.py
_orrery() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} at=orrery word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$at $word" in
{steps}
    esac
  done
  case "$at $previous" in
{values}
  esac
  case "$at" in
{words}
  esac
}}
complete -o default -F _orrery orrery
"""


def zsh_completion(commands: list[Command]) -> str:
    steps, values, words = shell_cases(commands, "compadd -- {}")
    return f"""#compdef orrery
# zsh completion for orrery, made by tools/make_manual.py
local at=orrery word previous=${{words[CURRENT-1]}}
for word in "${{words[@]:1:$((CURRENT-2))}}"; do
  case "$at $word" in
{steps}
  esac
done
case "$at $previous" in
{values}
esac
case "$at" in
{words}
esac
_files
"""


def fish_completion(commands: list[Command]) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["# fish completion for orrery, made by tools/make_manual.py"]
    for command in commands:
        seen = [f"__fish_seen_subcommand_from {word}" for word in command.path[1:]]
        condition = quoted("; and ".join(seen) if seen else "__fish_use_subcommand")
        start = f"complete -c orrery -n {condition}"
        for entry in command.subcommands + command.kinds:
            lines.append(f"{start} -a {entry.names[0]} -d {quoted(entry.text)}")
        for entry in command.positionals:
            if entry.words:
                lines.append(f"{start} -a {quoted(entry.words.removeprefix('$'))} -d {quoted(entry.text)}")
        for entry in command.kinds:
            if entry.words:
                after = quoted("; and ".join([*seen, f"__fish_seen_subcommand_from {entry.names[0]}"]))
                lines.append(f"complete -c orrery -n {after} -a {quoted(entry.words.removeprefix('$'))}")
        if len(command.path) == 1:
            lines.append(f"{start} -a help -d 'The options of a command'")
        for entry in command.options:
            names = " ".join(("-l " if n.startswith("--") else "-s ") + n.lstrip("-") for n in entry.names)
            value = " -r" if entry.value else ""
            if entry.words:
                value += f" -a {quoted(entry.words.removeprefix('$'))}"
            lines.append(f"{start} {names}{value} -d {quoted(entry.text)}")
    return "\n".join(lines) + "\n"


def main(binary: str, template: str, version: str, folder: str) -> None:
    commands = walk(binary, ["orrery"])
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    (out / "orrery.1").write_text(man_page(commands, pathlib.Path(template).read_text(), version))
    (out / "orrery.bash").write_text(bash_completion(commands))
    (out / "_orrery").write_text(zsh_completion(commands))
    (out / "orrery.fish").write_text(fish_completion(commands))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Rules of the house that a machine can check. Prints each breach as FILE:LINE: WHAT and exits with 1 when there is one.

  check_layers.py ROOT [--library build/liboutrider.so]

- Ranks: a file of src/<folder>/ includes only its own folder and folders of lower rank; cli and server only outrider.h,
  base and themselves. No file includes a .c file.
- Headers of intrinsics only in src/kernels, getenv only in src/cli.
- Files of at most 1,000 lines and functions of at most 80, unless a comment `long: REASON` stands in the file's head or right
  before the function.
- Nothing that lets a compiler change floating-point results; no path of the machine that a file was written on.
- The shared library exports outrider_... and nothing else.
"""
import argparse, os, re, subprocess, sys

RANKS = dict(base=0, file=1, kernels=1, text=2, weights=2, forward=3, decode=4, engine=5, cli=6, server=6)
FILE_LINES, FUNCTION_LINES = 1000, 80
INTRINSICS = re.compile(r"(\w*intrin|arm_neon|arm_acle|arm_fp16|arm_sve)\.h$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LONG = re.compile(r"\blong: *\S")
# Written in pieces, so that this file passes its own check.
LOOSE_MATH = re.compile("-f" + r"(fast-math|associative-math|reciprocal-math|finite-math-only|unsafe-math-optimizations|"
                        r"fp-contract=(fast|on))|-O" + r"fast|FP_" + r"CONTRACT\s+ON|float_" + "control|-mre" + "cip")
MACHINE_PATH = re.compile("/(ro" + "ot|wo" + "rk|fa" + "rm|ho" + r"me/\w+)/|/tmp/" + r"\w*job|\bde" + r"b\.debian\.org|py" + r"pi\.org")
TEXT = (".c", ".h", ".cc", ".py", ".md", ".txt", ".cmake", ".in", ".json", ".sh", ".yml", ".toml", ".1", ".html", ".js", ".css", "")
SKIPPED = re.compile(r"^(\.git|build.*|__pycache__|\.cache|node_modules|venv)$")


def files_below(root, sub=""):
    for folder, folders, names in os.walk(os.path.join(root, sub)):
        folders[:] = sorted(f for f in folders if not SKIPPED.match(f))
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def code_only(text):
    """The text with comments and the insides of literals blanked; line numbers stay."""
    def blank(m):
        s = m.group(0)
        return s if s[0] not in "/\"'" else "".join(c if c == "\n" else " " for c in s)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def part_of(path):
    """Folder of src/ that a path like src/kernels/x86/a.h or an include like kernels/x86/a.h belongs to."""
    first = path.split("/")[1 if path.startswith("src/") else 0]
    return first if first in RANKS else None


def check_includes(root, path, text, report):
    part = part_of(path)
    for number, line in enumerate(text.split("\n"), 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        kind, name = m.groups()
        if name.endswith(".c"):
            report(path, number, f"includes {name}")
        if INTRINSICS.search(name) and part != "kernels":
            report(path, number, f"{name} belongs in src/kernels")
        if kind == "<" or name == "outrider.h" or part is None:
            continue
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        other = part_of(beside) if os.path.exists(os.path.join(root, beside)) else part_of(name)
        if other is None:
            report(path, number, f"{name} is in no folder of src/")
        elif other != part and RANKS[other] >= RANKS[part]:
            report(path, number, f"{part} (rank {RANKS[part]}) includes {name} (rank {RANKS[other]})")
        elif part in ("cli", "server") and other not in ("base", part):
            report(path, number, f"{part} includes {name}; only outrider.h, base and {part} are open to it")


def check_lengths(path, text, report):
    """A function is what lies between a line `{` and the next line `}`, both at the margin."""
    lines, code = text.split("\n"), code_only(text).split("\n")
    head = re.match(r"\s*/\*.*?\*/", text, re.S)
    if head and LONG.search(head.group(0)):
        return
    if len(lines) - 1 > FILE_LINES:
        report(path, 1, f"{len(lines) - 1} lines, more than {FILE_LINES}")
    start = None
    for number, line in enumerate(code, 1):
        if line.rstrip() == "{":
            start = number
        elif line.rstrip() == "}" and start:
            length, start_of_body, start = number - start - 1, start, None
            if length <= FUNCTION_LINES:
                continue
            before = start_of_body - 1                        # up over the signature, then over the comment before it
            while before > 0 and code[before - 1].strip():
                before -= 1
            comment = []
            while before > 0 and lines[before - 1].strip() and not code[before - 1].strip():
                comment.append(lines[before - 1])
                before -= 1
            if not LONG.search("\n".join(comment)):
                report(path, start_of_body, f"function of {length} lines, more than {FUNCTION_LINES}")


def check_library(library, report):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        name = line.split()[-1].split("@")[0]
        if not name.startswith("outrider_"):
            report(os.path.basename(library), 0, f"exports {name}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("root")
    options.add_argument("--library")
    args = options.parse_args()
    breaches = []

    def report(path, line, what):
        breaches.append(f"{path}:{line}: {what}")

    count = 0
    for path in files_below(args.root):
        if os.path.splitext(path)[1] not in TEXT or os.path.getsize(os.path.join(args.root, path)) > 4 << 20:
            continue
        text, count = read(args.root, path), count + 1
        for number, line in enumerate(text.split("\n"), 1):
            if MACHINE_PATH.search(line):
                report(path, number, "a machine's path or a registry's host")
            if not path.endswith((".md", ".json")) and LOOSE_MATH.search(line) and "-fno-fast-math" not in line:
                report(path, number, "loose floating point")
        if not path.endswith((".c", ".h")):
            continue
        if path.startswith("src/"):
            check_includes(args.root, path, text, report)
            for number, line in enumerate(code_only(text).split("\n"), 1):
                if re.search(r"\b(secure_)?getenv\s*\(", line) and part_of(path) != "cli":
                    report(path, number, "getenv outside src/cli")
        elif re.search(r'^\s*#\s*include\s*["<][^">]+\.c[">]', text, re.M):
            report(path, 1, "includes a .c file")
        if path.startswith(("src/", "include/", "tests/", "tools/")):
            check_lengths(path, text, report)
    if args.library:
        check_library(args.library, report)
    print("\n".join(breaches) if breaches else f"{count} files, no breach")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())

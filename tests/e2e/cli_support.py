"""What the tests of the command share: running it, on pipes or on a terminal."""
import os, pty, re, select, signal, subprocess, time

SOURCE = os.environ.get("OUTRIDER_SOURCE") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
COMMANDS = ("run", "demo", "verify", "probe", "bench", "inspect", "tokenize")


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    env["TERM"] = "xterm"
    env.update(more)
    return env


def run(program, *args, stdin=b"", cwd=SOURCE, timeout=600, **env):
    """Runs to the end; stdout and stderr are bytes."""
    return subprocess.run([program, *args], input=stdin, capture_output=True, cwd=cwd, timeout=timeout, env=environment(**env))


def start(program, *args, stdin=subprocess.DEVNULL, **more):
    """Starts with interrupts as a shell leaves them to a foreground job, whatever they are here."""
    return subprocess.Popen([program, *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=SOURCE,
                            env=environment(), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **more)


def error_line(done, code):
    """The one line on stderr of a run that failed with this exit code."""
    text = done.stderr.decode()
    assert done.returncode == code, (done.returncode, text)
    assert re.fullmatch(r"outrider: [^\n]+\n", text), text
    return text[len("outrider: "):-1]


def on_terminal(program, *args, keys=b"", timeout=600, **env):
    """Runs with all three streams on a terminal of its own; returns exit code and all that was written there."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.chdir(SOURCE)
        os.execve(program, [program, *args], environment(**env))
    seen, end = b"", time.time() + timeout
    if keys:
        os.write(terminal, keys)
    while time.time() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    else:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), seen


def options_of(help_text):
    """Names in a --help text: {long: letter or None}."""
    found = re.findall(r"^  (?:-(\w), |    )--([a-z][a-z-]*)", help_text, re.M)
    return {name: letter or None for letter, name in found}

"""Adapters for solvers that are run as commands, configured in TOML files."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import signal
import string
import subprocess
import time
import tomllib
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from opticoll.errors import BadFile, BadOption, SolverUnavailable
from opticoll.file_contents import read_bytes
from opticoll.instances.readers.reading import as_struct, decode, refuse
from opticoll.instances.readers.solver_solutions import SolFile, positions, read_sol
from opticoll.nearest_names import nearest
from opticoll.shared_files import scratch_folder
from opticoll.solvers.adapters.interface import Adapter, Capabilities, LicenceState, ProgressLog, set_solution
from opticoll.solvers.process import solver_log
from opticoll.solvers.process.processes import descendants, processor_s, processor_s_of_children, tie_to_parent
from opticoll.solvers.program_writer import written
from opticoll.solvers.task import Outcome, Termination
from opticoll.solvers.verify import FEASIBLE, matrix_violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.program_writer import WrittenProgram
    from opticoll.solvers.task import SolveRequest

_log = logging.getLogger("opticoll")
#: Environment variable that lists the configuration files, separated by ``os.pathsep``.
VARIABLE = "OPTICOLL_SOLVERS"
#: Largest configuration file [bytes].
MOST_BYTES = 1 << 20
#: Value of {time_limit_s} in a command if there is no limit [s].
NO_LIMIT_S = 10**7
#: Grace period [s] of a command after its time limit, and after an interrupt.
GRACE_S, LAST_S = 0.5, 1.0
#: {time_limit_s} of a command under a limit of processor time, in multiples of that limit.
CLOCK_PER_CPU = 4.0
#: Relative difference beyond which a stated objective is not that of the values beside it, and how the message begins.
MISSTATED, OTHER_OBJECTIVE = 1e-5, "the solution file states the objective"
#: Seconds between two measurements of a command's processor time.
MEASURE_S = 0.1

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
#: The number of a version within a line that a command prints.
_NUMBER = re.compile(r"(?<![\w.])v?\d+(\.\w+)+(-\w+)*")
_FIELDS = {"mps", "lp", "sol", "time_limit_s", "cpu_limit_s", "threads", "seed", "rel_tol", "here"}
_STATUSES = {
    str(one): one
    for one in (
        Termination.OPTIMAL,
        Termination.INFEASIBLE,
        Termination.UNBOUNDED,
        Termination.INFEASIBLE_OR_UNBOUNDED,
        Termination.TIME_LIMIT,
        Termination.MEMORY_LIMIT,
        Termination.ITERATION_LIMIT,
    )
}
#: Patterns of the statuses in solution files, in the order in which they are tried.
_STATED = (
    (r"infeasible or unbounded|unbounded or infeasible|inforunbd", Termination.INFEASIBLE_OR_UNBOUNDED),
    (r"infeasible", Termination.INFEASIBLE),
    (r"unbounded", Termination.UNBOUNDED),
    (r"time", Termination.TIME_LIMIT),
    (r"memory", Termination.MEMORY_LIMIT),
    (r"limit|stopped|interrupt", Termination.ITERATION_LIMIT),
    (r"optimal", Termination.OPTIMAL),
)


#: What to do about a solution with other names.
_NAMES = "the command must write the names of the program, x0, x1, ... and r0, r1, ..."


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table of one solver: command, capabilities and patterns of statuses."""

    command: str
    title: str = ""
    lp: bool = True
    mip: bool = False
    duals: bool = False
    version_command: str = ""
    option: str = ""
    status: dict[str, str] = {}


class CommandLine(Adapter):
    """Adapter for a solver that is run as a command and configured in a TOML file.

    Every table of the file configures one solver::

        [mysolver]
        command = "mysolver {mps} {sol} --time {time_limit_s} --threads {threads}"  # or {lp}, {seed}, {rel_tol}, {here}
        lp = true                                   # problem classes it supports (default: lp only)
        mip = true
        duals = false                               # whether {sol} contains row duals, as HiGHS writes them
        version_command = "mysolver --version"      # its first line with a digit is recorded
        option = "--{name}={value}"                 # how to pass an option of --set; omit it if there are none
        [mysolver.status]                           # regular expressions that match what the command prints
        infeasible = "problem is infeasible"

    ``{here}`` is the folder of the file; relative program paths start there. The files are those listed in the variable
    OPTICOLL_SOLVERS (separated as in PATH) and ``opticoll/solvers.toml`` in the user's configuration folder. Commands
    run without a shell, in an empty folder of their own, with the same limits as every worker; the whole process group
    is killed at the end. The solution is read by column name and verified like any other. A command that exits with
    status 0 before the time limit without stating a status counts as having solved the program. One that fails after
    it has written a solution has crashed; the solution is kept.
    """

    package = ""
    distribution = ""
    algorithm = "command"
    limits_cpu = True

    def __init__(self, name: str, configuration: Configuration, here: str = ".") -> None:
        self.configuration, self.here = configuration, here
        self.name, self.title = name, configuration.title or name
        self.command = _words(configuration.command)
        self.capabilities = Capabilities(
            lp=configuration.lp, mip=configuration.mip, duals=configuration.duals, exact=True
        )
        self.install = self._remedy()
        self.distribution = self.command[0]

    @property
    def _file(self) -> str:
        """Name of the solution file in messages: it is gone when they are read."""
        return f"the solution file of {self.name!r}"

    @property
    def _program(self) -> str:
        return self.command[0].replace("{here}", self.here)

    def _remedy(self) -> str:
        if os.sep in self._program:
            return f"create {self._program!r}, or correct its path in the table"
        return f"install {self._program!r} and put it on PATH, or give its path in the table"

    def installed(self) -> bool:
        """Return whether the command's program can be found."""
        return shutil.which(self._program) is not None

    def version(self) -> str | None:
        """Return what the version command prints, and a hash of the configuration; None if it is not installed."""
        if not self.installed():
            return None
        words = tuple(word.format(here=self.here) for word in _words(self.configuration.version_command))
        printed = _printed_version(words) if words else ""
        number = _NUMBER.search(printed)
        printed = printed if number is None else number[0]
        digest = hashlib.sha256(msgspec.json.encode((self.name, self.configuration))).hexdigest()
        return f"{printed} (command {digest[:8]})".strip()

    def missing(self) -> str:
        """Return the error message for a missing program."""
        fault = "is not an executable file" if os.sep in self._program else "is not on PATH"
        return f"solver {self.name!r} runs {self._program!r}, which {fault}: {self._remedy()}"

    def load(self, module: str | None = None) -> Any:
        """Check that the program can be found; nothing is imported."""
        if not self.installed():
            raise SolverUnavailable(self.missing())
        return None

    def probe_licence(self) -> LicenceState:
        """Report that the solver comes from a configuration file; its licence is not checked."""
        return LicenceState(usable=True, state="configured")

    def refuse_options(self, options: Iterable[str]) -> None:
        """Accept all options: the configuration decides what the command may do."""

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form`` as a minimization without its constant; see :meth:`Adapter.solve`."""
        if request.options and not self.configuration.option:
            msg = f'solver {self.name!r} accepts no options; add option = "--{{name}}={{value}}" to its table'
            raise BadOption(msg)
        with scratch_folder() as folder:
            # columns x0, x1, ... and rows r0, r1, ..., without constant
            plain = replace(form, offset=0.0, columns={}, rows={})
            run = _Run(self, folder, request, plain)
            run.file.write(run.program, "opticoll")
            log = ProgressLog(form, progress)
            run.wait(lambda: self._report(form, run, log))
            outcome = self._outcome(form, request, run)
        outcome.incumbents = log.incumbents
        outcome.solve_s, outcome.cpu_s, outcome.algorithm = run.seconds, run.cpu_s, self.algorithm
        outcome.version, outcome.options = self.version(), {"command": self.configuration.command}
        outcome.options |= {name: str(value) for name, value in request.options.items()}
        return outcome

    def _read(self, run: _Run) -> SolFile:
        """The solution file, with the names of the program's file in place of numbers."""
        return read_sol(run.solution).named(run.file.columns, run.file.rows, self._file)

    def _report(self, form: StandardForm, run: _Run, log: ProgressLog) -> None:
        """Report the solution that the running command has written; an incomplete file is read later."""
        with suppress(BadFile):
            x = self._columns(form, self._read(run))
            if max(matrix_violations(form, x).values()) <= FEASIBLE:
                log.incumbent(x)

    def _outcome(self, form: StandardForm, request: SolveRequest, run: _Run) -> Outcome:
        """Derive the outcome from the solution file, the stated status and the exit status."""
        result, unread = None, ""
        if run.solution.exists():
            try:
                result = self._read(run)
                x = self._columns(form, result)
                y = self._rows(form, result, run.file)
            except BadFile as error:
                result, unread = None, str(error).replace(f"solution file {run.solution}", self._file)
        claimed = self._claimed(result, run)
        outcome = Outcome(claimed or Termination.OPTIMAL, raw=_raw(result, run))
        if run.killed:
            outcome.termination, outcome.message = Termination.TIME_LIMIT, "killed at the time limit"
        elif run.code < 0 or (run.code and claimed in (None, Termination.OPTIMAL)):
            outcome.termination = Termination.CRASHED
            wrote = "wrote a solution, but " if result is not None and result.solved else ""
            outcome.message = f"the command {wrote}ended with {_ending(run.code)}{run.last_output()}"
        elif claimed is None and _is_late(request, run):
            outcome.termination = Termination.TIME_LIMIT
        elif result is None and claimed in (None, Termination.OPTIMAL):
            outcome.termination = Termination.ERROR
            outcome.message = unread or f"the command wrote no solution file{run.last_output()}"
        if unread and not outcome.message:
            outcome.message = unread
        if result is not None and result.solved:
            set_solution(outcome, form, x, y)
            own = float(form.minimized().cost @ x)
            stated = own if result.objective is None else result.objective
            if abs(stated - own) > MISSTATED * max(abs(stated), abs(own), 1.0):
                outcome.message += f" {OTHER_OBJECTIVE} {stated!r}, but its values have {own!r}"
                outcome.message = outcome.message.strip()
        return outcome

    def _claimed(self, solution: SolFile | None, run: _Run) -> Termination | None:
        """The status according to the configured patterns or the solution file; None if neither states one."""
        for word, pattern in self.configuration.status.items():
            if re.search(pattern, run.output()):
                return _STATUSES[word]
        stated = "" if solution is None else solution.status
        return next((status for pattern, status in _STATED if re.search(pattern, stated)), None)

    def _columns(self, form: StandardForm, solution: SolFile) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Column values by name; columns missing from the file are 0, unused ones clipped to their bounds."""
        names = [f"x{j}" for j in range(form.A.shape[1])]
        idle = (np.diff(form.A.indptr) == 0) & (form.cost == 0)
        x = np.where(idle, np.clip(0.0, form.col_lower, form.col_upper), 0.0)
        x[positions(solution.values, names, self._file, remedy=_NAMES)] = list(solution.values.values())
        return x

    def _rows(
        self, form: StandardForm, solution: SolFile, file: WrittenProgram
    ) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        """Row duals by name, as d(objective)/d(rhs) of the stated problem; None unless ``duals`` is configured."""
        if not self.configuration.duals or solution.duals is None or form.is_mip:
            return None
        y = np.zeros(form.A.shape[0])
        at = file.row[positions(solution.duals, file.rows, self._file, "row", _NAMES)]
        np.add.at(y, at[at >= 0], np.array(list(solution.duals.values()))[at >= 0])
        return -y if form.sense == "max" else y


class InvalidTable(CommandLine):
    """A solver whose table in a configuration file is invalid: it cannot be used, and says what is wrong."""

    def __init__(self, name: str, fault: str) -> None:
        super().__init__(name, Configuration("invalid", mip=True))
        self.fault = self.install = fault

    def installed(self) -> bool:
        """Return that it cannot be used."""
        return False

    def missing(self) -> str:
        """Return what is wrong with the table."""
        return self.fault


class _Run:
    """One run of a command in a folder."""

    def __init__(self, solver: CommandLine, folder: Path, request: SolveRequest, form: StandardForm) -> None:
        self.solver, self.folder, self.request = solver, folder, request
        self.file = written(form, ".lp" if "{lp}" in solver.configuration.command else ".mps")
        self.program, self.solution = folder / f"program{self.file.suffix}", folder / "solution.sol"
        self.printed = folder / "output.txt"
        self.seconds, self.cpu_s, self.code, self.killed = 0.0, 0.0, 0, False

    def _words(self) -> list[str]:
        limit, cpu_limit = self.request.time_limit_s, self.request.cpu_limit_s
        # A command that reads a clock must not stop earlier because others share the processor.
        clock = limit if limit is not None else NO_LIMIT_S if cpu_limit is None else CLOCK_PER_CPU * cpu_limit
        values = {
            "mps": self.program,
            "lp": self.program,
            "sol": self.solution,
            "time_limit_s": f"{clock:.10g}",
            "cpu_limit_s": f"{clock if cpu_limit is None else cpu_limit:.10g}",
            "threads": self.request.threads,
            "seed": self.request.seed,
            "rel_tol": f"{self.request.rel_tol:g}",
            "here": self.solver.here,
        }
        words = [word.format(**values) for word in self.solver.command]
        for name, value in self.request.options.items():
            words += [word.format(name=name, value=value) for word in _words(self.solver.configuration.option)]
        return words

    def wait(self, report: Callable[[], None]) -> None:
        """Run the command until it ends, or interrupt it after its limit, when it may still write its solution.

        ``report`` is called whenever the solution file has changed.
        """
        environment = {name: text for name, text in os.environ.items() if not name.startswith("OPTICOLL_SOLVER")}
        start, before = time.perf_counter(), processor_s_of_children()
        with self.printed.open("wb") as output:
            try:
                process = subprocess.Popen(  # no shell
                    self._words(),
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                    preexec_fn=partial(tie_to_parent, os.getpid()),
                )
            except OSError as error:
                name, program = self.solver.name, self._words()[0]
                msg = f"solver {name!r}: {program!r} cannot be run ({error.strerror}); check its table"
                raise SolverUnavailable(msg) from error
        with self.printed.open("rb", buffering=0) as printed:
            tail = solver_log.Tail(printed)
            try:
                self._follow(process, report, tail, start)
            finally:
                _signal(process.pid, signal.SIGKILL)  # also ends processes that the command has left running
                process.wait()
                # Children that the command has not waited for are missing in what the system adds up.
                self.cpu_s = max(self.cpu_s, processor_s_of_children() - before)
                tail.copy()

    def _follow(
        self, process: subprocess.Popen[bytes], report: Callable[[], None], tail: solver_log.Tail, start: float
    ) -> None:
        """Report and show what a running command writes, and interrupt it after its limit."""
        limit, cpu_limit = self.request.time_limit_s, self.request.cpu_limit_s
        interrupted, state, measured = None, (0, 0), 0.0
        while process.poll() is None:
            tail.copy()
            passed = time.perf_counter() - start
            if passed > measured + MEASURE_S:
                measured, self.cpu_s = passed, max(self.cpu_s, _cpu_s(process.pid))
            now = self._state()
            if now != state:
                state = now
                report()
            late = limit is not None and passed > 1.02 * limit + GRACE_S
            late = late or (cpu_limit is not None and self.cpu_s > 1.02 * cpu_limit + GRACE_S)
            if late and interrupted is None:
                interrupted = passed
                self.killed = True
                _signal(process.pid, signal.SIGINT)
            elif interrupted is not None and passed > interrupted + LAST_S:
                _signal(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        self.seconds, self.code = time.perf_counter() - start, process.returncode

    def _state(self) -> tuple[int, int]:
        """Modification time and size of the solution file."""
        try:
            status = self.solution.stat()
        except OSError:
            return 0, 0
        return status.st_mtime_ns, status.st_size

    def output(self, most: int = 1 << 20) -> str:
        """The last ``most`` bytes that the command printed."""
        with self.printed.open("rb") as file:
            file.seek(max(0, self.printed.stat().st_size - most))
            return file.read().decode(errors="replace")

    def last_output(self) -> str:
        """The last lines that the command printed, to be appended to a message."""
        lines = [line.strip() for line in self.output(4000).splitlines() if line.strip()][-2:]
        return f"; last output: {' / '.join(lines)[:300]}" if lines else ""


def _cpu_s(root: int) -> float:
    """Processor time of a process and its descendants, the ended ones included [s]."""
    return sum(map(processor_s, (root, *descendants(root))))


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _ending(code: int) -> str:
    if code >= 0:
        return f"status {code}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def _is_late(request: SolveRequest, run: _Run) -> bool:
    """Whether a run took nearly all of the time that it had."""
    return (request.time_limit_s is not None and run.seconds >= 0.98 * request.time_limit_s) or (
        request.cpu_limit_s is not None and run.cpu_s >= 0.98 * request.cpu_limit_s
    )


def _raw(solution: SolFile | None, run: _Run) -> str:
    stated = "" if solution is None else solution.status
    return ", ".join(filter(None, [stated, "" if stated and not run.code else f"exit {_ending(run.code)}"]))


@cache
def _printed_version(words: tuple[str, ...]) -> str:
    """The first line with a digit that a command prints."""
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown version"
    lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
    return next((line.strip()[:80] for line in lines if any(c.isdigit() for c in line)), "unknown version")


# configuration ------------------------------------------------------------------------------------------------


def configured(taken: Mapping[str, Adapter]) -> dict[str, Adapter]:
    """The solvers of all configuration files by name; names in ``taken`` belong to other solvers and are refused.

    A table that is invalid is a solver that cannot be used: :meth:`Adapter.missing` is what is wrong with it.

    Raises
    ------
    BadFile
        If a file cannot be read; the message names it.
    """
    from opticoll.solvers.methods.index import MODULES

    result: dict[str, Adapter] = {}
    for path in [*_user_files(), *_named_files()]:
        result |= {one.name: one for one in read_configuration(path)}
    for name in list(result):
        if name in taken or name in MODULES or name == "auto":
            _warn_of_taken_name(name, os.environ.get(VARIABLE, ""))
            del result[name]
    return result


@cache
def _warn_of_taken_name(name: str, files: str) -> None:
    """Warn once for each list of files: they are read whenever a solver is looked up."""
    _log.warning("solver %r of a configuration file has the name of a built-in one: ignored; rename it", name)


def file_of(name: str) -> Path | None:
    """The last file of the variable OPTICOLL_SOLVERS that configures a solver; None if none does."""
    files = reversed(_named_files())
    return next((path for path in files if name in {one.name for one in read_configuration(path)}), None)


def _named_files() -> list[Path]:
    """The files of the variable OPTICOLL_SOLVERS."""
    return [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def _user_files() -> list[Path]:
    """The file in the user's configuration folder, if there is one."""
    folder = os.environ.get("XDG_CONFIG_HOME")
    with suppress(RuntimeError):  # no home folder
        path = (Path(folder) if folder else Path.home() / ".config") / "opticoll" / "solvers.toml"
        return [path] if path.is_file() else []
    return []


def read_configuration(path: Path) -> list[CommandLine]:
    """The solvers of a TOML file; a table that is invalid becomes an :class:`InvalidTable`.

    Raises
    ------
    BadFile
        If it cannot be read, is not TOML, or has no tables.
    """
    where = f"solver configuration {path}"
    text = decode(read_bytes(path, MOST_BYTES, "name a TOML file", where), where, "save it as UTF-8")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{where} is not TOML: {error}"
        raise BadFile(msg) from None
    if not tables:
        refuse(where, "has no tables; write [NAME] and its command")
    return [_solver(name, table, path, where) for name, table in tables.items()]


def _solver(name: str, table: Any, path: Path, where: str) -> CommandLine:
    try:
        return CommandLine(name, _configuration(name, table, where), str(path.resolve().parent))
    except BadFile as error:
        return InvalidTable(name, str(error))


def _configuration(name: str, table: Any, where: str) -> Configuration:
    at = f"{where}, solver {name[:40]!r}"
    if not _NAME.fullmatch(name):
        refuse(at, "a name has lower-case letters, digits, '-', '_' and '.', at most 40")
    result = as_struct(table, Configuration, at)
    for key, known in (("command", _FIELDS), ("version_command", {"here"}), ("option", {"name", "value"})):
        try:
            used = {field for word in _words(getattr(result, key)) for field in _fields(word)}
        except ValueError as error:
            refuse(at, f"{key} cannot be split into words ({error})")
        for field in sorted(used - known):
            names = ", ".join(f"{{{one}}}" for one in sorted(known))
            refuse(at, f"{key} has the unknown placeholder {{{field}}}; known: {names}")
        if key == "command" and (len(used & {"mps", "lp"}) != 1 or "sol" not in used):
            refuse(at, "command must contain {sol} and one of {mps} and {lp}")
    for word, pattern in result.status.items():
        if word not in _STATUSES:
            refuse(at, f"unknown status {word[:40]!r}; {nearest(word, list(_STATUSES))}")
        try:
            re.compile(pattern)
        except re.error as error:
            refuse(at, f"the pattern of status {word!r} is not a regular expression ({error})")
    if not (result.lp or result.mip):
        refuse(at, "lp and mip are both false; at least one must be true")
    return result


def _words(text: str) -> tuple[str, ...]:
    """The words of a command; a relative path of its program starts in the folder of the file."""
    words = tuple(shlex.split(text))
    if words and "/" in words[0] and not words[0].startswith(("/", "{here}")):
        words = (f"{{here}}/{words[0]}", *words[1:])
    return words


def _fields(word: str) -> set[str]:
    """Names of the placeholders in a word.

    Raises
    ------
    ValueError
        For braces that are not plain placeholders.
    """
    result = set()
    for _, field, form, conversion in string.Formatter().parse(word):
        if field is not None:
            if form or conversion:
                msg = f"placeholder {{{field}}} with a format"
                raise ValueError(msg)
            result.add(field)
    return result

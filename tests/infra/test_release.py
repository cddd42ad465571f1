"""`make release`: its refusals and its results; a failed release leaves no trace."""

import hashlib
import re
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree

import pytest

from duewheel import __version__
from infra.release import artefacts, release
from infra.release.release import PLACES, ROOT, Refused, current_version, entries, set_version
from local.aws.template import source_of
from tests.support.bounds import quick_first
from tests.support.cases import each_case

CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Tasks.

## [0.0.9] - 2026-01-31

- The beginning.
"""
RELEASED = CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-02-28\n")
BUILD = """
release-test:
	@! grep -q 6.6.6 pyproject.toml

artefacts:
	@cat pyproject.toml > built
	@! test -e during || sh during
	@! test -e fail
"""
IGNORED = ["built", "during", "fail"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of this repository that contain a version, with make targets of a line or two."""
    root = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as environment:
        for variable in ("NAME", "EMAIL"):
            for role in ("AUTHOR", "COMMITTER"):
                environment.setenv(f"GIT_{role}_{variable}", "someone")
        environment.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        environment.delenv("DRY_RUN", raising=False)
        prepare(root)
        yield root


@pytest.fixture
def repository(prepared: Path, tmp_path: Path) -> Path:
    return copytree(prepared, tmp_path / "repository")


def prepare(root: Path) -> None:
    for name in PLACES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    set_version(root, "0.1.0")
    (root / "CHANGELOG.md").write_text(CHANGELOG)
    (root / "Makefile").write_text(BUILD)
    (root / ".gitignore").write_text("\n".join(IGNORED))
    release.git(root, "init", "--quiet", "--initial-branch", "main")
    release.git(root, "add", "--all")
    release.git(root, "commit", "--quiet", "--message", "Begin")


def state(root: Path) -> tuple[str, ...]:
    commands = (["rev-parse", "HEAD"], ["tag", "--list"], ["status", "--porcelain"])
    return tuple(release.git(root, *command) for command in commands)


# ---------------------------------------------------------------- the version


def places_that_name(root: Path, version: str) -> set[str]:
    """Only as Duewheel's version, outside of tests and past releases: the same number may belong to
    OpenAPI, or be a part of 127.0.0.1."""
    number = version.replace(".", r"\.")
    before = "([Dd]uewheel[ /=@-]+v?|([Vv]ersion|[Rr]elease)(__)?[\"']?[ :=]+[\"']?|^    Value: )"
    others = [
        ":!*requirements/*",
        ":!layers/vendor/*",
        ":!tests",
        ":!client/tests",
        ":!CHANGELOG.md",
    ]
    found = subprocess.run(
        ["git", "grep", "-lE", rf"{before}{number}([^0-9.]|\.[^0-9]|\.?$)", "--", *others],
        cwd=root, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode in (0, 1), found.stderr
    return set(found.stdout.split())


def test_the_version_is_only_in_the_known_places() -> None:
    assert current_version(ROOT) == __version__
    assert places_that_name(ROOT, __version__) == set(PLACES)


@pytest.mark.parametrize(
    "version",
    quick_first(
        ["0.2.0", "3.1.0", "0.0.1", "1.0.0", "1.2.3", "3.2.0", "3.5.0"], pytest.mark.exhaustive, 2
    ),
)
def test_a_number_that_is_also_used_otherwise_can_be_released(version: str) -> None:
    assert places_that_name(ROOT, version) <= set(PLACES)


@each_case(
    "line",
    [
        "Duewheel 0.1.0 is out.",
        "pip install duewheel==0.1.0",
        "duewheel-0.1.0-arm64.zip",
        "since version 0.1.0.",
        "VERSION: Final[str]; __version__ = '0.1.0'",
        '"version": "0.1.0"',
    ],
)
def test_a_version_in_a_place_that_no_release_would_change_is_found(
    repository: Path, line: str
) -> None:
    (repository / "page.md").write_text(f"{line}\n")
    release.git(repository, "add", "page.md")
    assert places_that_name(repository, "0.1.0") == {*PLACES, "page.md"}


def test_a_stack_has_its_version_as_output() -> None:
    template = source_of(ROOT / "template.yaml")
    assert template["Outputs"]["Version"]["Value"] == __version__


def test_a_new_version_replaces_the_old_one_and_changes_nothing_else(repository: Path) -> None:
    before = {path: (repository / path).read_text() for path in PLACES}
    set_version(repository, "12.34.56")
    assert current_version(repository) == "12.34.56"
    set_version(repository, "0.1.0")
    assert {path: (repository / path).read_text() for path in PLACES} == before


def test_files_of_several_versions_are_an_error(repository: Path) -> None:
    (repository / "pyproject.toml").write_text('version = "0.2.0"\n')
    with pytest.raises(Refused, match=r"not of one version: .*'pyproject.toml': {'0\.2\.0'}"):
        current_version(repository)
    (repository / "pyproject.toml").write_text("")
    with pytest.raises(Refused, match=r"not of one version: .*'pyproject.toml': set\(\)"):
        current_version(repository)


# ---------------------------------------------------------------- the changelog


def test_a_section_of_headings_only_has_no_entries() -> None:
    assert entries(CHANGELOG, "Unreleased") == entries(RELEASED, "0.2.0") == "### Added\n\n- Tasks."
    assert entries(RELEASED, "0.0.9") == "- The beginning."
    assert entries(RELEASED, "Unreleased") == entries(RELEASED, "0.0.8") == ""
    assert entries("## [Unreleased]\n\n### Added\n\n### Fixed\n", "Unreleased") == ""


# ---------------------------------------------------------------- the release


def test_a_release_is_one_commit_with_a_tag_and_was_built_of_its_own_version(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main("0.2.0", repository) == 0

    log = release.git(repository, "log", "--format=%s")
    assert log.splitlines() == ["Release 0.2.0", "Begin"]
    assert release.git(repository, "cat-file", "-t", "v0.2.0") == "tag"
    tagged = release.git(repository, "rev-parse", "v0.2.0^{commit}")
    assert tagged == release.git(repository, "rev-parse", "HEAD")
    assert release.git(repository, "status", "--porcelain") == ""
    assert current_version(repository) == "0.2.0"
    changelog = (repository / "CHANGELOG.md").read_text()
    assert re.search(
        r"^## \[Unreleased\]\n\n## \[0\.2\.0\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE
    )
    assert entries(changelog, "0.2.0") == "### Added\n\n- Tasks."
    assert 'version = "0.2.0"\n' in (repository / "built").read_text()
    assert "git push --atomic origin main v0.2.0" in capsys.readouterr().out


def test_the_first_release_is_of_the_version_that_the_repository_has(repository: Path) -> None:
    assert release.main("0.1.0", repository) == 0
    assert release.git(repository, "tag", "--list") == "v0.1.0"
    changed = release.git(repository, "show", "--name-only", "--format=", "HEAD").splitlines()
    assert changed == ["CHANGELOG.md"]


def dirty(root: Path) -> None:
    (root / "new").write_text("")


def elsewhere(root: Path) -> None:
    release.git(root, "switch", "--quiet", "--create", "other")


def at_no_branch(root: Path) -> None:
    release.git(root, "switch", "--quiet", "--detach")


def tagged(root: Path) -> None:
    release.git(root, "tag", "v0.2.0")


def in_changelog(root: Path) -> None:
    written(root, RELEASED)


def nothing_new(root: Path) -> None:
    written(root, RELEASED.replace("[0.2.0]", "[0.1.9]"))


def written(root: Path, changelog: str) -> None:
    (root / "CHANGELOG.md").write_text(changelog)
    release.git(root, "commit", "--quiet", "--all", "--message", "Change")


@pytest.mark.parametrize(
    ("come_to", "version", "reason"),
    [
        (dirty, "0.2.0", "not committed"),
        (elsewhere, "0.2.0", "not on other"),
        (at_no_branch, "0.2.0", "not on no branch"),
        (tagged, "0.2.0", "v0.2.0 was released already"),
        (in_changelog, "0.2.0", "has a section 0.2.0 already"),
        (nothing_new, "0.2.0", "nothing under"),
        (None, "0.0.9", "older than 0.1.0"),
        (None, "v0.2.0", "three numbers"),
        (None, "", "three numbers"),
    ],
)
@pytest.mark.parametrize("dry_run", quick_first(["", "1"], pytest.mark.exhaustive))
def test_a_repository_that_is_not_ready_is_refused_and_not_changed(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    come_to: object,
    version: str,
    reason: str,
    dry_run: str,
) -> None:
    monkeypatch.setenv("DRY_RUN", dry_run)
    if callable(come_to):
        come_to(repository)
    before = state(repository)
    assert release.main(version, repository) == 1
    assert reason in capsys.readouterr().err
    assert state(repository) == before
    assert not (repository / "built").exists()


def test_a_dry_run_prints_the_release_and_changes_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRY_RUN", "1")
    before = state(repository)
    assert release.main("0.2.0", repository) == 0
    assert "- Tasks." in capsys.readouterr().out
    assert state(repository) == before
    assert not (repository / "built").exists()


def test_a_release_whose_build_failed_leaves_no_trace(repository: Path) -> None:
    (repository / "fail").write_text("")
    before = state(repository)
    assert release.main("0.2.0", repository) == 1
    assert state(repository) == before

    (repository / "fail").unlink()
    assert release.main("0.2.0", repository) == 0


def test_release_test_runs_the_tests_that_a_version_could_break() -> None:
    recipes = (ROOT / "Makefile").read_text("utf-8")
    (recipe,) = re.findall(r"^release-test: .+\n\t(.+)$", recipes, re.MULTILINE)
    assert recipe.split()[-2:] == ["tests/infra/test_release.py", "tests/upgrade"]


def test_a_version_with_failing_tests_is_not_released(repository: Path) -> None:
    before = state(repository)
    assert release.main("6.6.6", repository) == 1
    assert state(repository) == before
    assert not (repository / "built").exists()


@pytest.mark.parametrize(
    "during",
    quick_first(
        [
            "echo x > page.md; git add page.md; git commit -q -m Meanwhile -- page.md",
            "git switch -q -c other",
            "echo x > page.md",
            "echo x >> CHANGELOG.md",
        ],
        pytest.mark.exhaustive,
    ),
)
def test_a_change_during_the_build_is_noticed_and_a_commit_is_kept(
    repository: Path, capsys: pytest.CaptureFixture[str], during: str
) -> None:
    (repository / "during").write_text(during)
    assert release.main("0.2.0", repository) == 1
    assert "changed while it was built" in capsys.readouterr().err
    log = release.git(repository, "log", "--format=%s").splitlines()
    assert log == (["Meanwhile"] if "commit" in during else []) + ["Begin"]
    assert release.git(repository, "tag", "--list") == ""
    assert release.git(repository, "status", "--short") in ("", "?? page.md")
    assert current_version(repository) == "0.1.0"


def test_a_release_whose_tag_cannot_be_made_leaves_no_trace(repository: Path) -> None:
    release.git(repository, "config", "tag.gpgSign", "true")
    release.git(repository, "config", "gpg.program", "false")
    before = state(repository)
    assert release.main("0.2.0", repository) == 1
    assert state(repository) == before


# ---------------------------------------------------------------- where it is pushed to


@pytest.fixture
def colleague(repository: Path, tmp_path: Path) -> Path:
    """A clone of the same origin."""
    origin, clone = tmp_path / "origin.git", tmp_path / "colleague"
    release.git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(origin))
    release.git(repository, "remote", "add", "origin", str(origin))
    release.git(tmp_path, "clone", "--quiet", str(origin), str(clone))
    return clone


def moved_on(clone: Path) -> None:
    release.git(clone, "commit", "--quiet", "--allow-empty", "--message", "Move on")
    release.git(clone, "push", "--quiet", "origin", "main")


def released_by_a_colleague(clone: Path) -> None:
    release.git(clone, "tag", "v0.2.0")
    release.git(clone, "push", "--quiet", "origin", "v0.2.0")


@pytest.mark.parametrize(
    ("come_to", "reason"),
    [
        (moved_on, "main is not as it is at origin"),
        (released_by_a_colleague, "v0.2.0 was released already, at origin"),
    ],
)
def test_a_release_that_could_not_be_pushed_is_refused(
    repository: Path,
    colleague: Path,
    capsys: pytest.CaptureFixture[str],
    come_to: Callable[[Path], None],
    reason: str,
) -> None:
    come_to(colleague)
    before = state(repository)
    assert release.main("0.2.0", repository) == 1
    assert reason in capsys.readouterr().err
    assert state(repository) == before


def test_a_release_with_unpushed_commits_is_refused(
    repository: Path, colleague: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release.git(repository, "commit", "--quiet", "--allow-empty", "--message", "Mine alone")
    assert release.main("0.2.0", repository) == 1
    assert "push or pull first" in capsys.readouterr().err


def test_an_origin_that_does_not_answer_is_a_refusal(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release.git(repository, "remote", "add", "origin", str(repository / "nowhere"))
    assert release.main("0.2.0", repository) == 1
    assert "ls-remote" in capsys.readouterr().err


def test_a_release_that_the_origin_refuses_can_be_undone_and_made_again(
    repository: Path, colleague: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main("0.2.0", repository) == 0
    push, *undo = re.findall(r"^    (git .+)$", capsys.readouterr().out, re.MULTILINE)
    moved_on(colleague)
    assert subprocess.run(push.split(), cwd=repository, check=False).returncode == 1

    for command in undo:
        subprocess.run(command.split(), cwd=repository, check=True)
    release.git(repository, "pull", "--quiet", "--ff-only", "origin", "main")
    assert release.main("0.2.0", repository) == 0
    subprocess.run(push.split(), cwd=repository, check=True)
    log = release.git(repository, "log", "--format=%s")
    assert log.splitlines() == ["Release 0.2.0", "Move on", "Begin"]
    assert release.git(repository, "ls-remote", "origin", "v0.2.0")


# ---------------------------------------------------------------- the artefacts


@pytest.fixture
def build(tmp_path: Path) -> Path:
    for architecture in artefacts.ARCHITECTURES:
        layer = tmp_path / "build" / "package" / architecture / "CoreLayer" / "python"
        layer.mkdir(parents=True)
        (layer / "core.py").write_text(architecture)
        (layer.parents[1] / "template.yaml").write_text("Resources: {}")
    for name in ("sbom.json", "sbom-tools.json", "wheel/duewheel-0.2.0-py3-none-any.whl"):
        (tmp_path / "build" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "build" / name).write_text(name)
    return tmp_path / "build"


def test_the_artefacts_are_both_packages_the_client_the_bills_the_notes_and_their_sums(
    build: Path,
) -> None:
    made = build / "release"
    artefacts.collect(build, made, "0.2.0", RELEASED)

    assert {path.name for path in made.iterdir()} == {
        "duewheel-0.2.0-arm64.zip",
        "duewheel-0.2.0-x86_64.zip",
        "duewheel-0.2.0-py3-none-any.whl",
        "sbom.json",
        "sbom-tools.json",
        "NOTES.md",
        "SHA256SUMS",
    }
    with zipfile.ZipFile(made / "duewheel-0.2.0-x86_64.zip") as package:
        assert package.namelist() == ["CoreLayer/python/core.py", "template.yaml"]
        assert package.read("CoreLayer/python/core.py") == b"x86_64"
    assert (made / "NOTES.md").read_text() == "### Added\n\n- Tasks.\n"
    sums = dict(line.split("  ")[::-1] for line in (made / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in made.iterdir()
        if path.name != "SHA256SUMS"
    }


def test_the_same_build_gives_the_same_bytes_at_another_time_and_place(
    build: Path, tmp_path: Path
) -> None:
    other = copytree(build, tmp_path / "elsewhere", copy_function=copied_now)
    for one in (build, other):
        artefacts.collect(one, one / "release", "0.2.0", CHANGELOG)
    sums = [(one / "release" / "SHA256SUMS").read_text() for one in (build, other)]
    assert sums[0] == sums[1]


def copied_now(source: str, to: str) -> None:
    """Copies neither time nor mode."""
    Path(to).write_bytes(Path(source).read_bytes())
    Path(to).chmod(0o600)


def test_artefacts_of_an_earlier_release_are_deleted(build: Path) -> None:
    (build / "release").mkdir()
    (build / "release" / "duewheel-0.1.9-arm64.zip").write_text("")
    artefacts.collect(build, build / "release", "0.2.0", CHANGELOG)
    assert "0.1.9" not in (build / "release" / "SHA256SUMS").read_text()
    assert not (build / "release" / "duewheel-0.1.9-arm64.zip").exists()

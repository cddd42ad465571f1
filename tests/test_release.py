"""A release: what it refuses, what it writes, and that nothing is left of one that failed."""

import hashlib
import re
import subprocess
import zipfile
from pathlib import Path
from shutil import copytree

import pytest
from samtranslator.yaml_helper import yaml_parse

from duewheel import __version__
from infra import release, release_artefacts
from infra.release_changelog import has_entries, notes, released, unreleased
from infra.release_version import PLACES, ROOT, current_version, set_version

CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Tasks.

## [0.0.9] - 2026-01-31

- The beginning.
"""
BUILD = "artefacts:\n\t@cat pyproject.toml > built\n\t@! test -e fail\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This one's files that say a version, with a build of a line."""
    for variable in ("NAME", "EMAIL"):
        for role in ("AUTHOR", "COMMITTER"):
            monkeypatch.setenv(f"GIT_{role}_{variable}", "someone")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.delenv("DRY_RUN", raising=False)
    root = tmp_path / "repository"
    for name in PLACES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    set_version(root, "0.1.0")
    (root / "CHANGELOG.md").write_text(CHANGELOG)
    (root / "Makefile").write_text(BUILD)
    (root / ".gitignore").write_text("built\nfail\n")
    release.git(root, "init", "--quiet", "--initial-branch", "main")
    release.git(root, "add", "--all")
    release.git(root, "commit", "--quiet", "--message", "Begin")
    return root


def state(root: Path) -> tuple[str, ...]:
    asked = (["rev-parse", "HEAD"], ["tag", "--list"], ["status", "--porcelain"])
    return tuple(release.git(root, *question) for question in asked)


# ---------------------------------------------------------------- the version


def test_the_version_is_one_and_stands_nowhere_else() -> None:
    assert current_version(ROOT) == __version__
    files = subprocess.run(
        ["git", "grep", "-lFw", __version__, "--", ":!requirements*", ":!*/requirements*"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    told = {
        path
        for path in files.stdout.split()
        if re.search(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])", (ROOT / path).read_text())
    }
    allowed = {"CHANGELOG.md", "tests/test_release.py"}
    assert told - allowed == set(PLACES)


def test_a_stack_says_its_version() -> None:
    template = yaml_parse((ROOT / "template.yaml").read_text("utf-8"))
    assert template["Outputs"]["Version"]["Value"] == __version__


def test_a_new_version_takes_the_old_ones_place_and_changes_nothing_else(repository: Path) -> None:
    before = {path: (repository / path).read_text() for path in PLACES}
    set_version(repository, "12.34.56")
    assert current_version(repository) == "12.34.56"
    set_version(repository, "0.1.0")
    assert {path: (repository / path).read_text() for path in PLACES} == before


def test_files_of_several_versions_are_an_error(repository: Path) -> None:
    (repository / "pyproject.toml").write_text('version = "0.2.0"\n')
    with pytest.raises(ValueError, match=r"several versions: 0\.1\.0, 0\.2\.0"):
        current_version(repository)
    (repository / "pyproject.toml").write_text("")
    with pytest.raises(ValueError, match=r"pyproject\.toml does not say"):
        current_version(repository)


# ---------------------------------------------------------------- the changelog


def test_what_is_not_released_goes_under_its_version() -> None:
    after = released(CHANGELOG, "0.1.0", "2026-02-28")
    assert unreleased(after) == ""
    assert notes(after, "0.1.0") == unreleased(CHANGELOG) == "### Added\n\n- Tasks."
    assert notes(after, "0.0.9") == "- The beginning."
    assert notes(after, "0.0.8") == ""


def test_headings_alone_are_no_entries() -> None:
    assert not has_entries("### Added\n\n### Fixed")
    assert has_entries("### Added\n\n- Tasks.")


# ---------------------------------------------------------------- the release


def test_a_release_is_one_commit_with_a_tag_and_was_built_of_its_own_version(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main(["0.2.0"], repository) == 0

    log = release.git(repository, "log", "--format=%s")
    assert log.splitlines() == ["Release 0.2.0", "Begin"]
    assert release.git(repository, "cat-file", "-t", "v0.2.0") == "tag"
    tagged = release.git(repository, "rev-parse", "v0.2.0^{commit}")
    assert tagged == release.git(repository, "rev-parse", "HEAD")
    assert release.git(repository, "status", "--porcelain") == ""
    assert current_version(repository) == "0.2.0"
    assert "- Tasks." in notes((repository / "CHANGELOG.md").read_text(), "0.2.0")
    assert 'version = "0.2.0"\n' in (repository / "built").read_text()
    assert "git push --atomic origin main v0.2.0" in capsys.readouterr().out


def test_the_first_release_is_of_the_version_that_the_repository_has(repository: Path) -> None:
    assert release.main(["0.1.0"], repository) == 0
    assert release.git(repository, "tag", "--list") == "v0.1.0"


def dirty(root: Path) -> None:
    (root / "new").write_text("")


def elsewhere(root: Path) -> None:
    release.git(root, "switch", "--quiet", "--create", "other")


def at_no_branch(root: Path) -> None:
    release.git(root, "switch", "--quiet", "--detach")


def tagged(root: Path) -> None:
    release.git(root, "tag", "v0.2.0")


def told(root: Path) -> None:
    written(root, released(CHANGELOG, "0.2.0", "2026-02-28"))


def nothing_new(root: Path) -> None:
    written(root, released(CHANGELOG, "0.1.0", "2026-02-28"))


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
        (told, "0.2.0", "has a section 0.2.0 already"),
        (nothing_new, "0.2.0", "nothing under"),
        (None, "0.0.9", "older than 0.1.0"),
        (None, "v0.2.0", "three numbers"),
        (None, "", "three numbers"),
    ],
)
@pytest.mark.parametrize("dry_run", ["", "1"])
def test_what_is_in_no_state_to_be_released_is_refused_and_left_as_it_was(
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
    assert release.main([version], repository) == 1
    assert reason in capsys.readouterr().err
    assert state(repository) == before
    assert not (repository / "built").exists()


def test_a_dry_run_says_what_would_be_released_and_does_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRY_RUN", "1")
    before = state(repository)
    assert release.main(["0.2.0"], repository) == 0
    assert "- Tasks." in capsys.readouterr().out
    assert state(repository) == before
    assert not (repository / "built").exists()


def test_nothing_is_left_of_a_release_whose_build_failed(repository: Path) -> None:
    (repository / "fail").write_text("")
    before = state(repository)
    assert release.main(["0.2.0"], repository) == 1
    assert state(repository) == before

    (repository / "fail").unlink()
    assert release.main(["0.2.0"], repository) == 0


def test_nothing_is_left_of_a_release_whose_tag_cannot_be_made(repository: Path) -> None:
    release.git(repository, "config", "tag.gpgSign", "true")
    release.git(repository, "config", "gpg.program", "false")
    before = state(repository)
    assert release.main(["0.2.0"], repository) == 1
    assert state(repository) == before


# ---------------------------------------------------------------- the artefacts


@pytest.fixture
def build(tmp_path: Path) -> Path:
    for architecture in release_artefacts.ARCHITECTURES:
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
    release_artefacts.collected(build, made, "0.2.0", released(CHANGELOG, "0.2.0", "2026-02-28"))

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
        release_artefacts.collected(one, one / "release", "0.2.0", CHANGELOG)
    sums = [(one / "release" / "SHA256SUMS").read_text() for one in (build, other)]
    assert sums[0] == sums[1]


def copied_now(source: str, to: str) -> None:
    """Not its time, nor its mode."""
    Path(to).write_bytes(Path(source).read_bytes())
    Path(to).chmod(0o600)


def test_what_lay_there_of_an_earlier_release_is_gone(build: Path) -> None:
    (build / "release").mkdir()
    (build / "release" / "duewheel-0.1.9-arm64.zip").write_text("")
    release_artefacts.collected(build, build / "release", "0.2.0", CHANGELOG)
    assert "0.1.9" not in (build / "release" / "SHA256SUMS").read_text()
    assert not (build / "release" / "duewheel-0.1.9-arm64.zip").exists()

"""What `make build` adds to the layer: the documents that the console's help shows."""

from pathlib import Path

from infra.finish_build import DOCUMENTS, add_documents


def test_the_documents_for_users_are_beside_the_console(tmp_path: Path) -> None:
    (tmp_path / "python/duewheel/console").mkdir(parents=True)
    add_documents(tmp_path)
    placed = tmp_path / "python/duewheel/console/docs"
    found = {path.relative_to(placed) for path in placed.rglob("*") if path.is_file()}
    wanted = [*DOCUMENTS.glob("*.md"), *DOCUMENTS.glob("guides/*.md")]
    assert found == {path.relative_to(DOCUMENTS) for path in wanted}
    assert all((placed / name).read_bytes() == (DOCUMENTS / name).read_bytes() for name in found)

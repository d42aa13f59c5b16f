"""Lucene's own check of all files of an index."""

from pathlib import Path

from pt_neural._files import ArtifactError
from pt_neural.lucene.java.jvm import in_java, java_class, java_path


@in_java
def check_index(path: Path) -> None:
    """Raise ArtifactError if Lucene's CheckIndex finds a damaged file; nothing is changed."""
    no_lock = java_class("org.apache.lucene.store.NoLockFactory").INSTANCE
    directory = java_class("org.apache.lucene.store.FSDirectory").open(java_path(path), no_lock)
    try:
        checker = java_class("org.apache.lucene.index.CheckIndex")(directory)
        try:
            clean = checker.checkIndex().clean
        finally:
            checker.close()
    except Exception as error:  # jnius has one exception type for all of Java's
        raise ArtifactError(f"{path} is damaged: {error}") from None
    finally:
        directory.close()
    if not clean:
        raise ArtifactError(f"{path} is damaged: Lucene's CheckIndex says so; build the index again")

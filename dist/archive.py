"""Tar archives that come out the same, byte for byte, from the same files: names in order, one time for all, owners by number."""

import gzip
import io
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A file of an archive: a copy of another, or a text. With neither it is a folder."""

    source: Path | None = None
    text: str | None = None
    mode: int = 0o644
    owner: int = 0


def write(path, entries, time):
    """Writes entries by name, and the folders above them."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, entry in sorted((folders_above(entries) | entries).items()):
            add(archive, name, entry, time)


def write_compressed(path, entries, time):
    tar = path.with_suffix("")
    write(tar, entries, time)
    compress(tar, path)
    tar.unlink()


def compress(source, target):
    """Without name and time, which gzip would put in front."""
    with open(source, "rb") as plain, open(target, "wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
        shutil.copyfileobj(plain, compressed, 1 << 20)


def folders_above(entries):
    return {str(folder): Entry(mode=0o755) for name in entries for folder in Path(name).parents if str(folder) != "."}


def add(archive, name, entry, time):
    header = tarfile.TarInfo(name)
    header.mode, header.uid, header.gid, header.mtime = entry.mode, entry.owner, entry.owner, time
    if entry.source:
        header.size = entry.source.stat().st_size
        with open(entry.source, "rb") as content:
            archive.addfile(header, content)
    elif entry.text is not None:
        content = entry.text.encode()
        header.size = len(content)
        archive.addfile(header, io.BytesIO(content))
    else:
        header.type = tarfile.DIRTYPE
        archive.addfile(header)

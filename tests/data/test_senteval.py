"""SentEval's text from the archive that SimCSE's authors publish: rows, and what is refused."""

import hashlib
import io
import tarfile

import huggingface_hub
import pytest

from repro.data import load, senteval
from repro.report.page import Page
from repro.types import InputError

FILES = {
    "STS/STS12-en-test/STS.input.MSRpar.txt": "a  man plays .\ta man sings .\nnot\tjudged\n",
    "STS/STS12-en-test/STS.gs.MSRpar.txt": "4.4\n\n",
    "STS/STSBenchmark/sts-dev.csv": "main\tfile\t2012\t7\t5.000\tthe one\tthe other\n",
    "SICK/SICK_trial.txt": "pair_ID\tA\tB\tscore\tjudged\n4\tA kid\tKids \t4.5\tENTAILMENT\n",
    "MR/rt-polarity.pos": "good M-CM-) film\n \nbetter\n",
    "MR/rt-polarity.neg": "bad\n",
    "SST/binary/sentiment-dev": "fine .\t1\npoor .\t0\n",
    "TREC/TREC_10.label": "NUM:dist How far is it ?\nHUM:ind Who : me ?\n",
    "MRPC/msr_paraphrase_test.txt": "Quality\tID\tID\ts\ts\n1\t8\t9\tHe said .\tSaid he .\n",
}
"""Some of the archive's files; of the others, one line that any of their readers takes."""
ANY = {"csv": FILES["STS/STSBenchmark/sts-dev.csv"], "label": "NUM:dist How ?\n"}


def content_of(name):
    if name in FILES:
        return FILES[name]
    if name.startswith("SICK"):
        return FILES["SICK/SICK_trial.txt"]
    if name.startswith("MRPC"):
        return FILES["MRPC/msr_paraphrase_test.txt"]
    if "STS.gs" in name:
        return "1.0\n"
    return ANY.get(name.rpartition(".")[2], "a text\t1\n")


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Writes an archive as SimCSE's authors publish it, where REPRO_HUB names a copy."""
    monkeypatch.setenv("REPRO_HUB", str(tmp_path / "hub"))
    path = tmp_path / "hub" / "princeton-nlp" / "datasets-for-simcse" / "senteval.tar"
    path.parent.mkdir(parents=True)

    def write(names, prefix=""):
        with tarfile.open(path, "w") as file:
            for name in names:
                content = content_of(name).encode()
                member = tarfile.TarInfo(prefix + name)
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
        return path

    return write


@pytest.mark.parametrize("prefix", ["", "./", "downstream/"])
def test_texts_scores_and_labels_are_those_of_sentevals_own_readers(archive, prefix):
    archive([*senteval._needed(), "STS/other.txt"], prefix)
    old, dev = load("sts12", source="hub"), load("stsb", source="hub", split="dev")
    assert (old.texts1[0], old.texts2[0], old.scores[0]) == ("a man plays .", "a man sings .", 4.4)
    assert "not" not in old.texts1, "a pair that nobody judged is left out"
    assert (dev.texts1, dev.texts2, dev.scores.tolist()) == (("the one",), ("the other",), [5.0])
    for name, labels in (("sickr", None), ("sicke", ["entailment"])):
        sick = load(name, source="hub", split="dev")
        assert (sick.texts1, sick.texts2) == (("A kid",), ("Kids",))
        assert labels is None or sick.labels.tolist() == labels
    reviews = load("mr", source="hub")
    assert reviews.texts == ("good M-CM-) film", "better", "bad")
    assert reviews.labels.tolist() == ["positive", "positive", "negative"]
    assert load("sst2", source="hub", split="dev").labels.tolist() == ["1", "0"]
    trec = load("trec", source="hub", split="test")
    assert trec.texts == ("How far is it ?", "Who : me ?")
    assert trec.labels.tolist() == ["NUM", "HUM"]
    mrpc = load("mrpc", source="hub", split="test")
    assert (mrpc.texts1, mrpc.texts2, mrpc.labels.tolist()) == (
        ("He said .",),
        ("Said he .",),
        ["1"],
    )


def test_the_archive_is_read_once_and_by_repro_data_fetch(archive, repro, monkeypatch):
    archive(senteval._needed())
    assert repro("data fetch stsb").out.count("parquet") == 3
    kept = senteval.keep()
    monkeypatch.setattr(senteval, "_archive", lambda: pytest.fail("read again"))
    assert senteval.keep() == kept


def test_a_page_and_a_verb_keep_the_sets_before_they_read_any(archive, tmp_path, repro, tiny):
    archive(senteval._needed())
    page = Page("playground", "x", source="hub", parameters={"seed": 0})
    assert load("stsb", source=page.data_source, split="dev").texts1 == ("the one",)
    line = f"evaluate --encoder {tiny} --data trec --task classification --source hub"
    assert "only one class ('NUM')" in repro(line, ends=2).err, "they were read"


def test_an_archive_that_is_not_whole_is_refused(archive):
    path = archive(sorted(senteval._needed())[1:])
    with pytest.raises(InputError, match=r"senteval.tar has no CR/custrev.neg: is it SentEval's"):
        senteval.keep()
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(InputError, match=r"has no|no archive that can be read"):
        senteval.keep()
    path.write_bytes(b"no tar at all")
    with pytest.raises(InputError, match="no archive that can be read"):
        senteval.keep()
    path.unlink()
    with pytest.raises(
        InputError, match=r"holds no princeton-nlp/datasets-for-simcse/senteval.tar"
    ):
        senteval.keep()


def test_bytes_that_are_not_the_published_ones_are_refused(tmp_path, archive, monkeypatch):
    content = archive(senteval._needed()).read_bytes()
    monkeypatch.delenv("REPRO_HUB")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    blob = tmp_path / hashlib.sha256(content).hexdigest()
    asked = {}
    monkeypatch.setattr(
        huggingface_hub, "hf_hub_download", lambda *names, **where: asked.update(where) or blob
    )
    blob.write_bytes(content[:-1] + b"x")
    with pytest.raises(InputError, match="is not the published file, whose sha256 is"):
        senteval.keep()
    blob.write_bytes(content)
    assert senteval.keep()[0].is_file()
    assert asked["revision"] == "e145e8bb659b2aa2669f32ef79cb4cdef6c58fef"

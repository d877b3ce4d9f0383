"""The menu: every dataset that the five documents use, in one literal dict."""

from repro.data.spec import DatasetSpec, HubSource
from repro.types import one_of

_STS_LICENCE = "mixed per source; collection commonly given as CC BY-SA 4.0"
_SICK_LICENCE = "CC BY-NC-SA 3.0"
_RESEARCH = "none stated; research use"
_ALL = ("train", "test")
_BINARY = {"0": "negative", "1": "positive"}
_GLUE = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
_RAW_TEXT = "original text, no subset column: compare with text='raw', aggregate by 'all' only"


def _sts(year: int, pairs: int, citation: str, subsets: dict[str, int], revision: str | None) -> DatasetSpec:
    name = f"sts{year}"
    return DatasetSpec(
        name=name,
        kind="pairs",
        title=f"STS {2000 + year}",
        sizes={"test": pairs},
        citation=citation,
        licence=_STS_LICENCE,
        file=f"sts/{name}.tsv.gz",
        raw_file=f"sts/raw/{name}.tsv.gz",
        subset_sizes=subsets,
        hub=HubSource(f"mteb/{name}-sts", {"test": ("test",)}, revision=revision, note=_RAW_TEXT),
        microworld="1,000 graded pairs, five flavours of wording and length over the years",
    )


def _sick(**columns: str) -> HubSource:
    """The parquet branch of the authors' own repository, whose loading script no current `datasets` runs."""
    return HubSource(
        "RobZamp/sick",
        {"train": ("train",), "dev": ("validation",), "test": ("test",)},
        revision="refs/convert/parquet",
        data_files="default/{part}/*.parquet",
        columns={"sentence1": "sentence_A", "sentence2": "sentence_B", **columns},
        labels={"0": "entailment", "1": "neutral", "2": "contradiction"} if "label" in columns else {},
        note="the official splits of the authors' release: 4,439 / 495 / 4,906, the 87 pairs left out that SemEval's "
        "files repeat; original text: compare with text='raw'",
    )


def get_spec(name: str) -> DatasetSpec:
    """Look a dataset up by name.

    Raises:
        InputError: if it is not on the menu; the message lists the valid names.
    """
    return DATASETS[one_of(name, tuple(DATASETS), "dataset")]


# A table, not code: one entry per dataset, kept on few lines so that the menu can be read at a glance. A mirror is
# pinned where its full commit was found written down; `repro data list` marks the others, which are read as they are.
# fmt: off
DATASETS: dict[str, DatasetSpec] = {
    "sts12": _sts(12, 3108, "agirre2012semeval", {
        "MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399,
    }, "a0d554a64d88156834ff5ae9920b964011b16384"),
    "sts13": _sts(13, 1500, "agirre2013sem", {"FNWN": 189, "headlines": 750, "OnWN": 561},
        "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    "sts14": _sts(14, 3750, "agirre2014semeval", {
        "deft-forum": 450, "deft-news": 300, "headlines": 750, "OnWN": 750, "images": 750, "tweet-news": 750,
    }, "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    "sts15": _sts(15, 3000, "agirre2015semeval", {
        "answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750,
    }, "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    "sts16": _sts(16, 1186, "agirre2016semeval", {
        "answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209,
    }, "4d8694f8f0e0100860b497b999b3dbed754a0513"),
    "stsb": DatasetSpec(
        name="stsb", kind="pairs", title="STS Benchmark", sizes={"train": 5749, "dev": 1500, "test": 1379},
        citation="cer2017semeval", licence=_STS_LICENCE, file="sts/stsb.tsv.gz", raw_file="sts/raw/stsb.tsv.gz",
        hub=HubSource("mteb/stsbenchmark-sts", {"train": ("train",), "dev": ("validation",), "test": ("test",)},
                      revision="b0fddb56ed78048fa8b90373c8a3cfc37b684831", note=_RAW_TEXT),
        microworld="2,000 / 500 / 1,000 graded pairs"),
    "sickr": DatasetSpec(
        name="sickr", kind="pairs", title="SICK relatedness", sizes={"train": 4500, "dev": 500, "test": 4927},
        citation="marelli2014sick", licence=_SICK_LICENCE, file="sts/sickr.tsv.gz", raw_file="sts/raw/sick.tsv.gz",
        hub=_sick(score="relatedness_score"),
        microworld="1,000 graded test pairs (1–5 scale), 1,000 / 300 for train and dev"),
    "sicke": DatasetSpec(
        name="sicke", kind="labelled_pairs", title="SICK entailment", form="split", floor=56.69,
        sizes={"train": 4500, "dev": 500, "test": 4927}, citation="marelli2014sick", licence=_SICK_LICENCE,
        file="sts/sick.tsv.gz", raw_file="sts/raw/sick.tsv.gz", columns={"label": "entailment"},
        hub=_sick(label="label"),
        microworld="entailment, neutral, contradiction: 1,200 / 300 / 600 pairs",
        note="the entailment column of SICK"),
    "mr": DatasetSpec(
        name="mr", kind="texts", title="Movie reviews", form="nested", floor=50.00, sizes={"all": 10662},
        citation="pang2005seeing", licence=_RESEARCH, file="classification/mr.tsv.gz",
        hub=HubSource("cornell-movie-review-data/rotten_tomatoes", {"all": ("train", "validation", "test")},
                      revision="b6059de032aed3fea5bfadcbef8d375559c6bfd9", labels=_BINARY,
                      note="rows in another order; text otherwise encoded in places"),
        microworld="1,200 opinions about films"),
    "cr": DatasetSpec(
        name="cr", kind="texts", title="Customer reviews", form="nested", floor=63.76, sizes={"all": 3775},
        local_sizes={"all": 3771}, citation="hu2004mining", licence=_RESEARCH, file="classification/cr.tsv.gz",
        hub=HubSource("SetFit/SentEval-CR", {"all": _ALL}, labels=_BINARY, drop_blank=True,
                      note="SentEval's text split into train and test, joined here: rows in another order"),
        microworld="1,200 opinions about things people bought",
        note="SentEval counts 4 blank lines as examples; the local file leaves them out"),
    "subj": DatasetSpec(
        name="subj", kind="texts", title="Subjectivity", form="nested", floor=50.00, sizes={"all": 10000},
        citation="pang2004sentimental", licence=_RESEARCH, file="classification/subj.tsv.gz",
        hub=HubSource("SetFit/subj", {"all": _ALL}, labels={"0": "objective", "1": "subjective"},
                      revision="2eba632847a64707391116d7e9b3cd72c700c5e6",
                      note="split into train and test, joined here: rows in another order"),
        microworld="1,200 sentences: feelings and opinions against plain facts"),
    "mpqa": DatasetSpec(
        name="mpqa", kind="texts", title="MPQA opinion polarity", form="nested", floor=68.77, sizes={"all": 10606},
        local_sizes={"all": 10603}, citation="wiebe2005annotating", licence="GPL (MPQA corpus)",
        file="classification/mpqa.tsv.gz",
        hub=HubSource("rahulsikder223/SentEval-MPQA", {"all": _ALL}, columns={"text": "sentence"}, labels=_BINARY,
                      drop_blank=True, note="split into train and test, joined here: rows in another order"),
        microworld="1,200 short opinion phrases",
        note="SentEval counts 3 blank lines as examples; the local file leaves them out"),
    "sst2": DatasetSpec(
        name="sst2", kind="texts", title="Stanford Sentiment Treebank, binary", form="split", floor=50.08,
        sizes={"train": 67349, "dev": 872, "test": 1821}, citation="socher2013recursive", licence=_RESEARCH,
        file="classification/sst2.tsv.gz",
        hub=HubSource("nyu-mll/glue", {"train": ("train",), "dev": ("validation",)}, config="sst2",
                      revision=_GLUE, columns={"text": "sentence"},
                      note="GLUE hides the test labels: they come from SetFit/sst2",
                      elsewhere={"test": HubSource("SetFit/sst2", {"test": ("test",)},
                                                   revision="00ea8ccb7a54b4e3780a3e51aa3f80361ff849c0")}),
        microworld="2,000 / 300 / 600 opinions, phrases among the training texts"),
    "trec": DatasetSpec(
        name="trec", kind="texts", title="TREC question types", form="kfold", floor=27.60,
        sizes={"train": 5452, "test": 500}, citation="li2002learning", licence=_RESEARCH,
        file="classification/trec.tsv.gz",
        hub=HubSource("SetFit/TREC-QC", {"train": ("train",), "test": ("test",)},
                      columns={"label": "label_coarse_original"}),
        microworld="1,500 / 500 questions in six classes",
        note="always guessing the training set's largest class gives 18.80"),
    "mrpc": DatasetSpec(
        name="mrpc", kind="labelled_pairs", title="Microsoft Research paraphrases", form="kfold", floor=66.49,
        sizes={"train": 4076, "test": 1725}, citation="dolan2005automatically", licence="Microsoft Research licence",
        file="classification/mrpc.tsv.gz",
        hub=HubSource("nyu-mll/glue", {"train": ("train", "validation"), "test": ("test",)}, config="mrpc",
                      revision=_GLUE, note="GLUE's train and validation make SentEval's train, in another order"),
        microworld="1,500 / 600 pairs: paraphrases and hard negatives (roles swapped, one factor changed)"),
    "20news": DatasetSpec(
        name="20news", kind="texts", title="20 Newsgroups, by date", sizes={"train": 11314, "test": 7532},
        citation="lang1995newsweeder", licence=_RESEARCH, file="clustering/20news.tsv.gz",
        hub=HubSource("SetFit/20_newsgroups", {"train": ("train",), "test": ("test",)},
                      columns={"label": "label_text"}, drop_blank=True,
                      revision="f1b91292074e7cfb69be58b642d583ec262f30ed",
                      note="headers, footers and quotes removed: harder than the local full text, and fewer rows "
                           "because some posts are then empty"),
        microworld="20 topics, 1,000 / 600 short posts"),
    "hotpotqa": DatasetSpec(
        name="hotpotqa", kind="retrieval", title="HotpotQA, distractor setting", sizes={"test": 7405},
        local_sizes={"test": 671}, citation="yang2018hotpotqa", licence="CC BY-SA 4.0",
        file="retrieval/hotpotqa_{part}.tsv.gz",
        hub=HubSource("hotpotqa/hotpot_qa", {"test": ("validation",)}, config="distractor",
                      revision="1908d6afbbead072334abe2965f91bd2709910ab",
                      note="the whole dev set; the local files hold 671 questions over 6,615 paragraphs"),
        microworld="200 queries over 500 documents of 3–5 sentences"),
    "wiki": DatasetSpec(
        name="wiki", kind="corpus", title="English Wikipedia sentences", sizes={"train": 1000000},
        local_sizes={"train": 1098779}, citation="gao2021simcse", licence="CC BY-SA 3.0 / GFDL",
        file="train/wiki.txt.gz",
        hub=HubSource("princeton-nlp/datasets-for-simcse", {"train": ("train",)}, data_files="wiki1m_for_simcse.txt",
                      revision="e145e8bb659b2aa2669f32ef79cb4cdef6c58fef", drop_blank=True,
                      note="SimCSE's own sample; the local file is another one of equal kind"),
        microworld="20,000 sentences, or as many as `limit` asks for"),
    "nli": DatasetSpec(
        name="nli", kind="labelled_pairs", title="SNLI and MultiNLI", sizes={"train": 942069},
        local_sizes={"train": 66392}, citation="bowman2015large", licence="CC BY-SA 4.0 (SNLI), mixed (MultiNLI)",
        file="train/nli.tsv.gz", columns={"sentence1": "premise", "sentence2": "hypothesis"},
        hub=HubSource("sentence-transformers/all-nli", {"train": ("train",)}, config="pair-class",
                      revision="cc6c526380e29912b5c6fa03682da4daf773c013",
                      columns={"sentence1": "premise", "sentence2": "hypothesis"},
                      labels={"0": "entailment", "1": "neutral", "2": "contradiction"},
                      note="all of SNLI and MultiNLI train; the local file is a sample of 66,392 pairs"),
        microworld="6,000 pairs: entailment, neutral, contradiction",
        note="holds SNLI dev and test: report no SNLI accuracy after training on it"),
    "flickr30k": DatasetSpec(
        name="flickr30k", kind="captions", title="Flickr30k captions, five per image",
        sizes={"train": 145000, "val": 5070, "test_2016": 5000},
        local_sizes={"train": 139080, "val": 4860, "test_2016": 4785}, citation="young2014image",
        licence="Flickr30k terms; non-commercial research", file="train/flickr30k_captions.tsv.gz",
        hub=HubSource("embedding-data/flickr30k_captions_quintets", {"train": ("train",)}, columns={"caption": "set"},
                      revision="7d69c1059ad790db0f0aef8e91f5fdb33db97fa1",
                      note="images whose captions occur in STS test sets are not marked, so not dropped"),
        microworld="5 wordings of each of 2,000 meanings",
        note="label = image: captions of one image are positives. Images with a caption in an STS set are dropped"),
    "glove": DatasetSpec(
        name="glove", kind="vectors", title="GloVe 6B, 50 dimensions", sizes={"all": 400000},
        local_sizes={"all": 13330}, citation="pennington2014glove", licence="PDDL 1.0",
        file="vectors/glove.6B.50d.union13330.txt.gz",
        microworld="50-dimensional word vectors counted from its own sentences",
        note="the local file keeps the 10,000 most frequent words and 3,330 rarer ones; no hub mirror is used"),
}

"""The words of the microworld: class → group → values, each value a row of synonyms.

Common words only, so that a WordPiece vocabulary trained on any English knows them. A value's place in the tree is
its meaning: two values are alike as far as they share their group (a pet, a vehicle) or their class (an animal, a
thing). The group names are words too: they serve as the general term when a sentence is made less specific.
"""

from typing import TypeAlias

Tree: TypeAlias = dict[str, dict[str, tuple[str, ...]]]

# Anyone here can act; anyone and anything can be acted upon. Ten animate groups, then ten of things: twenty topics.
BEINGS: Tree = {
    "person": {
        "health worker": ("doctor|physician|medic", "nurse|caregiver|hospital nurse", "dentist|tooth doctor"),
        "school person": ("teacher|schoolteacher|instructor", "student|pupil|learner", "professor|lecturer|academic"),
        "kitchen worker": ("cook|chef|head cook", "waiter|server|waitress", "baker|bread maker|pastry cook"),
        "law officer": ("policeman|police officer|cop", "lawyer|attorney|legal adviser", "judge|magistrate"),
        "artist": ("singer|vocalist|pop singer", "painter|portrait artist", "writer|author|novelist"),
        "family member": ("mother|mom|mum", "father|dad|daddy", "child|kid|youngster"),
        "country worker": ("farmer|grower|farm owner", "fisherman|angler", "hunter|huntsman"),
    },
    "animal": {
        "pet": ("dog|hound|puppy", "cat|kitten|house cat", "parrot|pet bird"),
        "farm animal": ("horse|pony|stallion", "cow|cattle beast|milk cow", "pig|hog|swine"),
        "wild animal": ("wolf|wild wolf", "bear|brown bear|grizzly", "monkey|ape|chimpanzee"),
    },
}
THINGS: Tree = {
    "object": {
        "vehicle": ("car|automobile|motor car", "bicycle|bike|cycle", "truck|lorry|pickup"),
        "instrument": ("guitar|acoustic guitar", "piano|grand piano|keyboard", "drum|drum set"),
        "piece of furniture": ("table|desk|dining table", "chair|seat|stool", "bed|mattress|double bed"),
        "weapon": ("gun|pistol|firearm", "sword|blade|dagger", "bomb|explosive|grenade"),
        "tool": ("hammer|mallet", "knife|pocket knife", "ladder|stepladder"),
        "device": ("computer|laptop|personal computer", "telephone|phone|mobile phone", "camera|video camera"),
    },
    "good": {
        "garment": ("coat|jacket|overcoat", "dress|gown|skirt", "hat|cap"),
        "food": ("cake|pie|dessert", "apple|red fruit|fruit", "sandwich|burger|toast"),
        "piece of reading": ("book|novel|volume", "newspaper|daily paper|journal", "letter|message|note"),
        "treasure": ("ring|jewel|diamond", "coin|gold piece|silver coin", "crown|royal crown"),
    },
}

# Base forms; the first word is inflected, so "look at" gives "looked at" and "looking at".
ACTIONS: Tree = {
    "mind": {
        "perceive": ("see|notice|spot", "watch|observe|look at", "hear|listen to|overhear", "examine|inspect|study"),
        "think": ("remember|recall|think of", "forget", "recognize|identify", "imagine|dream of|picture"),
        "like": ("love|adore|cherish", "admire|respect|look up to", "praise|compliment|applaud", "miss|long for"),
        "dislike": ("hate|detest|despise", "fear|dread", "criticize|condemn|blame", "envy|resent"),
    },
    "body": {
        "carry": ("carry|transport|haul", "lift|raise|pick up", "push|shove|press against", "pull|drag|tug"),
        "hurt": ("hit|strike|punch", "kick|boot", "attack|assault", "damage|harm|hurt"),
        "care": ("wash|clean|scrub", "protect|guard|defend", "rescue|save|free", "touch|stroke|pat"),
        "chase": ("follow|trail|walk behind", "chase|pursue|run after", "catch|capture|trap", "throw|toss|hurl"),
    },
    "dealing": {
        "trade": ("buy|purchase|pay for", "sell|trade away|auction off", "steal|snatch", "borrow|take on loan"),
        "seek": ("find|discover|locate", "lose|misplace", "hide|conceal|cover up", "show|display|present"),
        "depict": ("draw|sketch", "photograph|film|snap", "describe|talk about|portray"),
        "move on": ("bring|deliver|fetch", "leave|abandon|desert", "choose|select|pick out"),
    },
}

ATTRIBUTES: Tree = {
    "look": {
        "color": (
            "red|crimson|scarlet",
            "blue|navy blue",
            "green|emerald green",
            "yellow|golden",
            "black|jet black",
            "white|snow white",
        ),
        "size": ("big|large|huge", "small|little|tiny", "tall|high", "heavy|weighty", "thin|slender|slim"),
        "beauty": ("beautiful|pretty|lovely", "ugly|hideous|unattractive", "elegant|stylish|graceful"),
    },
    "state": {
        "age": ("old|aged|ancient", "new|recent|brand new", "modern|up-to-date"),
        "condition": ("dirty|filthy|muddy", "clean|spotless", "wet|soaked", "dry|dried out", "cold|icy|chilly"),
        "presence": ("lost|missing|vanished", "hidden|unseen", "waiting|idle"),
    },
    "standing": {
        "fame": ("famous|well-known|celebrated", "unknown|obscure|nameless", "royal|noble"),
        "oddity": ("strange|odd|weird", "ordinary|normal|usual", "dangerous|risky|unsafe", "expensive|costly|valuable"),
    },
}

PLACES: Tree = {
    "town": {
        "street": (
            "on the street|on the road|on the avenue",
            "at the market|at the bazaar",
            "at the station",
            "in the parking lot|in the car park",
            "on the bridge",
        ),
        "culture": (
            "in the museum|in the gallery",
            "in the library|in the reading room",
            "at the theater|at the playhouse",
            "in the church|in the chapel",
        ),
        "service": (
            "at the hospital|at the clinic|in the emergency room",
            "at the school|in the classroom",
            "in the office|at the workplace",
            "in the prison|in the jail|behind bars",
        ),
        "hospitality": (
            "in the restaurant|at the diner|in the cafe",
            "at the hotel|at the inn|at the motel",
            "in the bar|in the pub",
        ),
    },
    "home": {
        "room": ("in the kitchen", "in the bedroom", "in the basement|in the cellar"),
        "yard": ("in the garden|in the backyard|on the lawn", "in the garage|in the shed"),
    },
    "nature": {
        "water": (
            "on the beach|at the seashore|by the sea",
            "by the river|on the bank of the stream",
            "at the lake|on the lake shore",
        ),
        "land": (
            "in the forest|in the woods|among the trees",
            "in the mountains|on the hill|in the highlands",
            "in the desert|in the sand dunes",
            "in the field|in the meadow",
        ),
    },
}

TIMES: Tree = {
    "clock": {
        "day": ("in the morning|at dawn|at sunrise", "at noon|at midday", "in the evening|at dusk|at sunset"),
        "night": ("at night|after dark|at midnight",),
    },
    "calendar": {
        "recent": ("yesterday|the day before", "last week|a week ago|seven days ago"),
        "distant": ("last year|a year ago|twelve months ago", "long ago|many years ago|ages ago"),
        "season": ("in winter|in the cold season", "in summer|in the hot season", "in spring", "in autumn|in fall"),
        "weekday": ("on Monday", "on the weekend|on Saturday", "on Sunday"),
    },
    "event": {
        "weather": ("during the storm|in the heavy rain", "during the snowfall|while it snowed"),
        "feast": ("at Christmas|over the holidays", "during the wedding|at the marriage feast"),
    },
}

MANNERS: Tree = {
    "pleasant": {
        "joy": ("happily|cheerfully|with joy", "proudly|with pride", "eagerly|with enthusiasm"),
        "kindness": ("gently|softly|tenderly", "kindly|warmly", "politely|with good manners"),
        "skill": ("carefully|cautiously|with care", "expertly|with great skill", "patiently|with patience"),
    },
    "unpleasant": {
        "anger": ("angrily|furiously|in anger", "violently|with brute force", "rudely|with bad manners"),
        "sorrow": ("sadly|unhappily|with tears", "nervously|anxiously|with fear", "unwillingly|reluctantly"),
        "fault": ("carelessly|recklessly|without care", "by mistake|by accident"),
    },
    "plain": {
        "speed": ("quickly|rapidly|in a hurry", "slowly|without haste"),
        "noise": ("quietly|silently|without a sound", "loudly|noisily"),
        "openness": ("secretly|in secret", "openly|in public"),
    },
}

# Each pair of actions excludes the other: the microworld's contradictions that need no negation.
ANTONYMS: tuple[tuple[str, str], ...] = (
    ("love", "hate"),
    ("praise", "criticize"),
    ("remember", "forget"),
    ("push", "pull"),
    ("buy", "sell"),
    ("find", "lose"),
    ("hide", "show"),
    ("protect", "attack"),
    ("bring", "steal"),
)

# Past and participle of verbs that do not simply take -ed.
IRREGULAR: dict[str, tuple[str, str]] = {
    "see": ("saw", "seen"),
    "hear": ("heard", "heard"),
    "overhear": ("overheard", "overheard"),
    "think": ("thought", "thought"),
    "forget": ("forgot", "forgotten"),
    "find": ("found", "found"),
    "hit": ("hit", "hit"),
    "strike": ("struck", "struck"),
    "hurt": ("hurt", "hurt"),
    "come": ("came", "come"),
    "run": ("ran", "run"),
    "catch": ("caught", "caught"),
    "throw": ("threw", "thrown"),
    "buy": ("bought", "bought"),
    "pay": ("paid", "paid"),
    "sell": ("sold", "sold"),
    "steal": ("stole", "stolen"),
    "make": ("made", "made"),
    "take": ("took", "taken"),
    "lose": ("lost", "lost"),
    "hide": ("hid", "hidden"),
    "show": ("showed", "shown"),
    "draw": ("drew", "drawn"),
    "give": ("gave", "given"),
    "bring": ("brought", "brought"),
    "leave": ("left", "left"),
    "choose": ("chose", "chosen"),
}

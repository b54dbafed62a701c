"""The story of `recollect demo`: what is said, what is asked, and what the right answers are."""

from dataclasses import dataclass

USER = "mira"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What Mira says, and what her assistant answers."""

    said: str
    answered: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the text that answers it; they share no word."""

    asked: str
    answer: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Something to keep in mind, and how much it matters."""

    content: str
    importance: float


ALLERGY = "For Friday's dinner: Nora is allergic to peanuts."
INJURY = "My daughter broke her wrist at football practice."
HABIT = "Mira would rather be phoned in the morning than at night."

MONDAY = (
    Exchange("The train to Bergen was cancelled, so I took the night bus.", "That sounds tiring. Did you sleep?"),
    Exchange("I finally signed the lease for the flat by the river.", "Congratulations! When do you move?"),
    Exchange(ALLERGY, "Noted, I will tell the cook."),
)

THURSDAY = (
    Exchange(INJURY, "I am sorry. I cleared your afternoon, so that you can stay with her."),
    Exchange("The cardiologist wants me to cut down on coffee.", "Shall I order decaf?"),
)

QUESTIONS = (
    Question("Who cannot eat nuts?", ALLERGY),
    Question("How did the child get hurt?", INJURY),
    Question("At what time of day should I call?", HABIT),
)

IN_MIND = (
    Thought("Nora must not get peanuts", 0.95),
    Thought("The restaurant plays jazz on Fridays", 0.3),
    Thought("Eight guests, one high chair", 0.6),
    Thought("The table is booked for seven o'clock", 0.7),
    Thought("Ben arrives half an hour late", 0.5),
    Thought("Two guests are vegetarian", 0.6),
    Thought("The toast is to the new flat", 0.5),
    Thought("Parking is behind the theatre", 0.4),
    Thought("The flowers are paid for", 0.4),
    Thought("A taxi is ordered for eleven", 0.5),
)
ONE_MORE = Thought("Dinner moves to the garden room", 0.7)
CROWDED_OUT = IN_MIND[1]

RELATIONS = (
    ("Mira", "KNOWS", "Nora"),
    ("Nora", "SINGS_IN", "Harbour Choir"),
    ("Harbour Choir", "MEETS_AT", "Old Theatre"),
    ("Mira", "RENTS", "River Flat"),
    ("River Flat", "LIES_IN", "Bergen"),
    ("Ben", "COOKS_FOR", "Nora"),
)
ENDS = ("Mira", "Old Theatre")
PATH = ("Mira", "Nora", "Harbour Choir", "Old Theatre")

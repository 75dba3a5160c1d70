"""Everyday sentences of call centres, dictation and voice commands, drawn at random.

A pattern is text with names in braces; a name is replaced by one of its choices,
again and again, until no name is left. Numbers are words, as a speaker says them.
"""

import random
import re

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = (
    "_ first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()


def cardinal(n: int) -> str:
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (f" {ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{ONES[n // 100]} hundred" + (f" and {cardinal(n % 100)}" if n % 100 else "")
    return f"{cardinal(n // 1000)} thousand" + (f" {cardinal(n % 1000)}" if n % 1000 else "")


def ordinal(n: int) -> str:
    if n <= 20:
        return ORDINALS[n]
    return "thirtieth" if n == 30 else f"{TENS[n // 10]} {ORDINALS[n % 10]}"


def digits(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(ONES[:10]) for _ in range(count))


NUMBERS = {
    "small": lambda rng: cardinal(rng.randint(2, 20)),
    "number": lambda rng: cardinal(rng.choice((rng.randint(2, 99), rng.randint(100, 999), rng.randint(1, 9) * 1000))),
    "digits": lambda rng: digits(rng, rng.randint(3, 8)),
    "day": lambda rng: ordinal(rng.randint(1, 30)),
    "year": lambda rng: rng.choice(("nineteen", "twenty")) + " " + cardinal(rng.randint(20, 99)),
    "minute": lambda rng: rng.choice(("fifteen", "thirty", "forty five", "ten", "twenty", "oh five")),
    "hour": lambda rng: cardinal(rng.randint(1, 12)),
}

CHOICES = {
    "name": "james mary robert linda john susan michael karen david lisa william nancy richard betty thomas helen "
    "charles sandra daniel ashley matthew donna anthony carol mark ruth steven sharon paul michelle andrew laura "
    "joshua sarah kenneth emma kevin anna brian grace george alice edward jane peter lucy simon kate martin julia "
    "oliver sophie henry rachel jack maria samuel claire arthur rose frank diana victor olivia",
    "surname": "smith johnson williams brown jones miller davis wilson anderson taylor thomas moore jackson martin "
    "thompson white harris clark lewis robinson walker young allen king wright scott hill green adams baker nelson "
    "carter mitchell roberts turner phillips campbell parker evans edwards collins stewart morris rogers reed cook "
    "morgan bell murphy bailey cooper richardson cox howard ward peterson gray watson brooks kelly sanders price",
    "city": "london|new york|boston|chicago|dallas|denver|seattle|paris|berlin|madrid|rome|sydney|toronto|dublin|"
    "edinburgh|manchester|bristol|oxford|cambridge|houston|atlanta|miami|portland|san francisco|los angeles|tokyo|"
    "singapore|amsterdam|vienna|liverpool|leeds|glasgow|cardiff|melbourne|vancouver|washington",
    "weekday": "monday tuesday wednesday thursday friday saturday sunday",
    "month": "january february march april may june july august september october november december",
    "street": "main park oak maple cedar church station high mill bridge lake river garden king's queen's north west",
    "road": "street road avenue lane drive square",
    "person": "my wife|my husband|my son|my daughter|my mother|my father|my brother|my sister|my boss|my friend|"
    "our manager|the doctor|the customer|the driver|the teacher|the nurse|my neighbour|the lawyer|the landlord|"
    "a colleague|the agent|my assistant|the patient|the engineer|the supplier|{name}|{name} {surname}|mister {surname}|"
    "missus {surname}|doctor {surname}",
    "thing": "order|account|bill|invoice|card|package|ticket|booking|reservation|appointment|policy|contract|payment|"
    "refund|subscription|password|phone|laptop|router|computer|email|address|delivery|receipt|statement|loan|claim|"
    "insurance|passport|application|report|document|letter|message|key|printer|television|washing machine|car|bicycle|"
    "house|room|table|flight|train|bus|meeting|prescription|bank transfer|credit card|gift card|broadband|line|"
    "connection|service|warranty|product|website|screen|camera|battery|charger|fridge|oven|heating|boiler",
    "problem": "is not working|has not arrived|is broken|was cancelled|is missing|was charged twice|arrived damaged|"
    "keeps stopping|is too slow|is wrong|has expired|was stolen|does not turn on|is late again|got lost|is locked|"
    "was declined|makes a strange noise|stopped working {when}|needs to be replaced|is still pending|is out of date|"
    "cost more than i expected|has a crack in it|was sent to the wrong address|will not open|disappeared {when}",
    "when": "today|yesterday|this morning|last night|last week|two days ago|on {weekday}|on {month} {day}|this afternoon|"
    "an hour ago|{small} days ago|last month|over the weekend|earlier today|a few minutes ago|last {weekday}",
    "later": "tomorrow|next week|next month|on {weekday}|tonight|this evening|in an hour|in {small} minutes|at {time}|"
    "on {month} {day}|on the {day} of {month}|tomorrow morning|after lunch|before {time}|next {weekday} at {time}|"
    "by the end of the week|as soon as possible|later today|at the weekend",
    "time": "{hour} o'clock|{hour} {minute}|half past {hour}|a quarter past {hour}|a quarter to {hour}|noon|midnight|"
    "{hour} in the morning|{hour} in the afternoon|{hour} {minute} in the evening",
    "money": "{number} dollars|{number} pounds|{number} euros|{small} dollars and {number} cents|{number} dollars a month",
    "do": "cancel|change|check|confirm|renew|return|replace|update|pay for|ask about|talk about|track|collect|move|"
    "find|send back|complain about|upgrade|order|sell|repair|book|send|sign|print|open|close|keep",
    "polite": "please|could you please|can you|would you|i would like you to|i need you to|will you",
    "food": "bread|milk|eggs|butter|cheese|apples|bananas|oranges|tomatoes|potatoes|onions|carrots|rice|pasta|chicken|"
    "beef|fish|soup|salad|coffee|tea|sugar|flour|salt|pepper|olive oil|chocolate|ice cream|orange juice|water|yogurt|"
    "garlic|mushrooms|lemons|honey|a sandwich|a pizza|strawberries|beans|cake|biscuits",
    "place": "kitchen|bedroom|bathroom|garden|garage|office|hall|living room|hospital|school|station|airport|bank|library|"
    "supermarket|restaurant|hotel|park|museum|church|post office|pharmacy|gym|beach|theatre|market|warehouse|factory|"
    "meeting room|front door|basement|car park|city centre|train station|corner shop",
    "weather": "sunny|cloudy|windy|rainy|cold|warm|freezing|foggy|stormy|snowy|wet|dry|humid|mild|hot",
    "feeling": "happy|sorry|worried|pleased|disappointed|tired|angry|excited|afraid|glad|upset|confused|surprised|sure|"
    "grateful|nervous|proud|hungry|busy|ready|lonely|calm",
    "symptom": "a headache|a fever|a sore throat|a cough|back pain|chest pain|an allergy|a rash|a cold|the flu|"
    "stomach pain|high blood pressure|a broken arm|trouble sleeping|dizziness|an infection|a swollen ankle|toothache",
    "song": "music|the radio|some jazz|the news|my favourite song|classical music|the next song|a podcast|an audio book",
    "device": "the lights|the heating|the alarm|the radio|the television|the fan|the lamp|the oven|the music|the camera|"
    "the air conditioning|the microphone|the speaker|the printer|the computer",
    "verbed": "called|wrote to|met|saw|visited|helped|thanked|asked|told|phoned|paid|drove|invited|warned|reminded",
    "adjective": "new|old|small|large|red|blue|green|black|white|expensive|cheap|broken|second hand|heavy|light|wooden|"
    "beautiful|important|urgent|final|early|late|monthly|annual|private|public|short|long|missing|wrong|correct",
    "punctuation": "comma|full stop|question mark|new line|new paragraph|colon|exclamation mark|period",
}

PATTERNS = """
i would like to {do} my {thing}
i want to {do} the {adjective} {thing} i bought {when}
hello my name is {name} {surname} and my {thing} {problem}
my {thing} {problem}
my {adjective} {thing} {problem} and i am very {feeling}
the {thing} {problem} so i want a refund of {money}
{polite} {do} my {thing} {later}
{polite} tell me when the {thing} will arrive
can i speak to {person} about the {thing}
my account number is {digits}
the reference number is {digits}
you can call me back on {digits}
my phone number is {digits} and my name is {name}
the code is {digits} and it expires {later}
i live at {number} {street} {road} in {city}
please send it to {number} {street} {road}
my date of birth is the {day} of {month} {year}
i was born on {month} {day} {year} in {city}
the total is {money}
i was charged {money} for the {thing} {when}
that will be {money} including tax
the {thing} costs {money} but the {adjective} one is only {money}
i paid {money} {when} and the {thing} {problem}
what is the balance on my {thing}
how much does the {adjective} {thing} cost
how long will it take to {do} the {thing}
is there anything else i can help you with today
thank you for calling how can i help you
thank you for your help have a nice day
please hold the line while i {do} your {thing}
i am {feeling} about the {thing}
i am {feeling} to hear that your {thing} {problem}
let me {do} the {thing} for you
could you spell your last name for me
could you repeat the last {small} digits please
press {small} to speak to {person}
we will {do} your {thing} {later}
our office is open from {hour} until {time}
we are closed on {weekday} and {weekday}
the next train to {city} leaves at {time}
i need a ticket from {city} to {city} {later}
two tickets to {city} for {weekday} please
my flight to {city} was delayed by {small} hours
is there a flight to {city} {later}
i would like to book a table for {small} people {later}
i would like to book a room in {city} for {small} nights
there are {number} people in the {place}
dear {name} thank you for your letter of {month} {day}
dear mister {surname} i am writing to you about the {adjective} {thing}
dear {name} {punctuation} {punctuation} please find the {thing} attached {punctuation}
best regards {name} {surname}
yours sincerely {name} {surname}
please find attached the {adjective} {thing} for {month}
the meeting with {person} is {later}
the meeting has been moved from {weekday} to {weekday} at {time}
remind me to {do} the {thing} {later}
remind me to call {person} {later}
set an alarm for {time}
set a timer for {small} minutes
wake me up at {time} {later}
turn on {device} in the {place}
turn off {device} in the {place} {later}
turn {device} up a little
please play {song} in the {place}
stop {song} and turn off {device}
what is the weather like in {city} {later}
it will be {weather} and {weather} in {city} {later}
it was {weather} {when} but {later} will be {weather}
call {name} {surname} on the mobile
send a message to {name} saying i will be late
text {person} that i am at the {place}
add {food} and {food} to the shopping list
we need {food} {food} and {food} from the supermarket
i had {food} for breakfast and {food} for dinner
would you like {food} or {food} with your {food}
the recipe needs {number} grams of {food} and some {food}
the patient has {symptom} and {symptom}
i have had {symptom} since {weekday}
take {small} tablets a day with {food}
the doctor said i have {symptom} and should stay in bed
{person} {verbed} {person} {when}
{person} {verbed} me about the {thing} {when}
{person} and {person} went to the {place} in {city} {when}
{person} left the {thing} in the {place} {when}
{person} lost the {thing} near the {place}
{person} wants to {do} the {adjective} {thing} {later}
{person} is {feeling} because the {thing} {problem}
have you seen {person} in the {place}
where is the nearest {place}
how do i get to the {place} from the {place}
turn left at the {place} and walk {number} metres
the {place} is next to the {place} on {street} {road}
we are going to the {place} {later}
i will meet you at the {place} at {time}
i left my {adjective} {thing} at the {place}
do you know where my {thing} is
did you {do} the {thing} or should i do it {later}
i do not want to {do} it because it is too {adjective}
we have to {do} the {thing} before {weekday}
the {adjective} {thing} is in the {place}
the price went up from {number} to {number} in {month}
about {number} of the {number} customers were {feeling}
he is {number} years old and she is {number}
it happened at {time} on {weekday} the {day} of {month}
in {year} the company moved from {city} to {city}
sales grew by {small} percent in {month}
the contract starts on {month} {day} and ends in {year}
count {small} {small} {small} {small} {small}
""".strip().splitlines()

LISTS = {name: text.split("|") if "|" in text else text.split() for name, text in CHOICES.items()}


def sentence(rng: random.Random) -> str:
    text = rng.choice(PATTERNS)
    while "{" in text:
        text = re.sub(r"\{(\w+)\}", lambda m: NUMBERS[m[1]](rng) if m[1] in NUMBERS else rng.choice(LISTS[m[1]]), text)
    return text

const SMALL = (
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen ' +
  'eighteen nineteen'
).split(' ');
const TENS = ' ten twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');
const THOUSANDS = ['', 'thousand', 'million', 'billion', 'trillion'];
/** More digits are an identifier, not an amount: an account, a card. */
const DIGITS_MAX = 15;

const ORDINALS: Readonly<Record<string, string>> = {
  one: 'first',
  two: 'second',
  three: 'third',
  five: 'fifth',
  eight: 'eighth',
  nine: 'ninth',
  twelve: 'twelfth',
};

/** Each digit by itself. */
export const digitWords = (digits: string): string => [...digits].map((digit) => SMALL[Number(digit)]).join(' ');

function belowThousand(value: number): string {
  const words: string[] = [];
  if (value >= 100) words.push(SMALL[Math.floor(value / 100)]!, 'hundred');
  const rest = value % 100;
  if (rest >= 20) {
    words.push(TENS[Math.floor(rest / 10)]!);
    if (rest % 10 > 0) words.push(SMALL[rest % 10]!);
  } else if (rest > 0) words.push(SMALL[rest]!);
  return words.join(' ');
}

/** A whole number as an amount; digit by digit when it begins with a zero or is too long to be one. */
export function cardinalWords(digits: string): string {
  if ((digits.length > 1 && digits.startsWith('0')) || digits.length > DIGITS_MAX) return digitWords(digits);
  let rest = Number(digits);
  if (rest === 0) return SMALL[0]!;
  const groups: string[] = [];
  for (let power = 0; rest > 0; power++, rest = Math.floor(rest / 1_000)) {
    if (rest % 1_000 > 0) groups.unshift(`${belowThousand(rest % 1_000)} ${THOUSANDS[power]}`.trim());
  }
  return groups.join(' ');
}

/** Its place in a row: the twenty second. */
export function ordinalWords(digits: string): string {
  const words = cardinalWords(digits.replace(/^0+(?=\d)/, '')).split(' ');
  const last = words.pop()!;
  const place = ORDINALS[last] ?? (last.endsWith('y') ? `${last.slice(0, -1)}ieth` : `${last}th`);
  return [...words, place].join(' ');
}

/** As years are said: nineteen eighty four, two thousand seven, twenty twenty six. */
export function yearWords(digits: string): string {
  const year = Number(digits);
  const [century, rest] = [Math.floor(year / 100), year % 100];
  if (century % 10 === 0 && rest < 10) return cardinalWords(digits);
  if (rest === 0) return `${cardinalWords(String(century))} hundred`;
  return `${cardinalWords(String(century))} ${rest < 10 ? `oh ${SMALL[rest]}` : belowThousand(rest)}`;
}

/** `1,234.50` without sign: an amount, and behind the point digit by digit. */
export function decimalWords(number: string): string {
  const [whole = '0', fraction] = number.replaceAll(',', '').split('.');
  const before = cardinalWords(whole === '' ? '0' : whole);
  return fraction ? `${before} point ${digitWords(fraction)}` : before;
}

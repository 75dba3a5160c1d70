import { cardinalWords, decimalWords, digitWords, ordinalWords, yearWords } from './number-words.ts';
import { currencies, months, units } from './word-tables.ts';

const NUMBER = String.raw`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?`;
const CURRENCY = new RegExp(
  String.raw`([$€£¥])\s?(${NUMBER})(?:\s(hundred|thousand|million|billion|trillion)\b)?`,
  'gi',
);
const ISO_DATE = /\b(\d{4})-(\d{2})-(\d{2})\b/g;
const MONTH_NAMES = months.map((month) => `${month.slice(0, 3)}(?:${month.slice(3)})?`).join('|');
const DAY_MONTH = new RegExp(String.raw`\b(?:the\s)?(\d{1,2})(?:st|nd|rd|th)?\s(?:of\s)?(${MONTH_NAMES})\b`, 'gi');
const MONTH_DAY = new RegExp(String.raw`\b(${MONTH_NAMES})\.?\s(\d{1,2})(?:st|nd|rd|th)?\b(?![.:]\d)`, 'gi');
const TIME = /\b([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?\b/g;
const ORDINAL = /\b(\d{1,15})(?:st|nd|rd|th)\b/gi;
const DECADE = /\b(1[1-9]|20)(\d0)'?s\b/g;
const WITH_UNIT = new RegExp(String.raw`(${NUMBER})\s?(${[...units.keys()].join('|')})\b`, 'gi');
const VERSION = /(?<![\d.])\d+(?:\.\d+){2,}(?![\d.])/g;
const RANGE = /(\d)\s?[-–—]\s?(?=\d)/g;
const MINUS = /(^|[\s(])[-−–](?=\d)/g;
const YEAR = /(?<![\d.,$€£])\b(1[1-9]\d\d|20\d\d)\b(?![.,]\d|,\d{3})/g;

/** `5.20` of a currency. */
function amount(sign: string, number: string, scale: string | undefined): string {
  const [one, many, part, parts] = currencies.get(sign)!;
  if (scale) return ` ${decimalWords(number)} ${scale} ${many} `;
  const [whole = '0', fraction = ''] = number.replaceAll(',', '').split('.');
  const cents = fraction.length === 1 ? Number(fraction) * 10 : Number(fraction);
  if (fraction.length > 2) return ` ${decimalWords(number)} ${many} `;
  const big = `${cardinalWords(whole)} ${Number(whole) === 1 ? one : many}`;
  const small = `${cardinalWords(String(cents))} ${cents === 1 ? part : parts}`;
  if (cents === 0) return ` ${big} `;
  return Number(whole) === 0 ? ` ${small} ` : ` ${big} and ${small} `;
}

function date(whole: string, year: string, month: string, day: string): string {
  const name = months[Number(month) - 1];
  return name && Number(day) >= 1 && Number(day) <= 31
    ? ` ${name} ${ordinalWords(day)}, ${yearWords(year)} `
    : whole.split('-').map(cardinalWords).join(' ');
}

function time(hour: string, minute: string): string {
  const before = cardinalWords(String(Number(hour)));
  if (minute === '00') return ` ${before} o'clock `;
  return ` ${before} ${Number(minute) < 10 ? `oh ${digitWords(minute.slice(1))}` : cardinalWords(minute)} `;
}

const fullMonth = (given: string) => months.find((month) => month.startsWith(given.slice(0, 3).toLowerCase()))!;

/** Dates, times, money and numbers of a text as words; everything else stays. */
export function spellNumbers(text: string): string {
  return text
    .replace(CURRENCY, (_, sign: string, number: string, scale?: string) => amount(sign, number, scale?.toLowerCase()))
    .replace(ISO_DATE, date)
    .replace(DAY_MONTH, (_, day: string, month: string) => `the ${ordinalWords(day)} of ${fullMonth(month)}`)
    .replace(MONTH_DAY, (_, month: string, day: string) => `${fullMonth(month)} ${ordinalWords(day)}`)
    .replace(TIME, (_, hour: string, minute: string) => time(hour, minute))
    .replace(ORDINAL, (_, digits: string) => ` ${ordinalWords(digits)} `)
    .replace(
      DECADE,
      (_, century: string, tens: string) =>
        ` ${cardinalWords(century)} ${tens === '00' ? 'hundreds' : `${cardinalWords(tens).replace(/y$/, 'ie')}s`} `,
    )
    .replace(VERSION, (version) => ` ${version.split('.').map(cardinalWords).join(' point ')} `)
    .replace(RANGE, '$1 to ')
    .replace(MINUS, '$1minus ')
    .replace(
      WITH_UNIT,
      (_, number: string, unit: string) => ` ${decimalWords(number)} ${units.get(unit.toLowerCase())} `,
    )
    .replace(/(\d)\/(?=\d)/g, '$1 slash ')
    .replace(YEAR, (year) => ` ${yearWords(year)} `)
    .replace(new RegExp(NUMBER, 'g'), (number) => ` ${decimalWords(number)} `);
}

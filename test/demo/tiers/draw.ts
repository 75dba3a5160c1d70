// The picture: a row for each model, coloured by tier, and a dot for each request.
import { type Span, type Tier, tiers } from './timeline.ts';
import type { Request } from './traffic.ts';

export interface Picture {
  readonly title: string;
  readonly subtitle: string;
  readonly rows: readonly { readonly model: string; readonly note: string; readonly spans: readonly Span[] }[];
  readonly requests: readonly (Request & { readonly tier: Tier })[];
  /** Epoch ms. */
  readonly from: number;
  readonly to: number;
}

const ROW = 20;
const BAR = 14;
const LEFT = 150;
const TOP = 104;
const WIDTH = 1_120;
const RIGHT = 28;
const TICK_SECONDS = 10;

const COLOURS: Readonly<Record<Tier, string>> = { gpu: '#2a7f78', ram: '#8cc7bd', ssd: '#d9e6dd', blob: '#f4f1ea' };
const MEANING: Readonly<Record<Tier, string>> = {
  gpu: 'gpu: loaded by the engine',
  ram: 'ram: copied for the engine',
  ssd: 'ssd: verified files',
  blob: 'blob: fetched first',
};
const INK = '#22302e';
const MUTED = '#7b8784';
const WAITED = '#d9622b';
const FAILED = '#b3122a';

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const n = (value: number) => Number(value.toFixed(1));

interface TextStyle {
  readonly size?: number;
  readonly fill?: string;
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly weight?: number;
}

const text = (x: number, y: number, words: string, style: TextStyle = {}) => {
  const { size = 11, fill = INK, anchor = 'start', weight = 400 } = style;
  return `<text x="${n(x)}" y="${n(y)}" font-size="${size}" fill="${fill}" text-anchor="${anchor}" font-weight="${weight}">${escapeXml(words)}</text>`;
};

/** Returns the picture as SVG. */
export function draw({ title, subtitle, rows, requests, from, to }: Picture): string {
  const height = TOP + rows.length * ROW + 44;
  const x = (at: number) => LEFT + ((at - from) / (to - from)) * (WIDTH - LEFT - RIGHT);
  const y = (row: number) => TOP + row * ROW;
  const parts = [
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    text(24, 36, title, { size: 18, weight: 600 }),
    text(24, 57, subtitle, { size: 12, fill: MUTED }),
    ...legend(),
    ...axis(x, y(rows.length), { from, to }),
  ];
  for (const [at, { model, note, spans }] of rows.entries()) {
    const top = y(at) + (ROW - BAR) / 2;
    parts.push(text(LEFT - 56, top + 11, model, { anchor: 'end' }));
    parts.push(text(LEFT - 10, top + 11, note, { anchor: 'end', fill: MUTED, size: 10 }));
    for (const span of spans) {
      const left = x(Math.max(from, span.from));
      const width = x(Math.min(to, span.to)) - left;
      if (width <= 0) continue;
      parts.push(
        `<rect x="${n(left)}" y="${top}" width="${n(width + 0.3)}" height="${BAR}" fill="${COLOURS[span.tier]}"/>`,
      );
    }
  }
  const rowOf = new Map(rows.map(({ model }, at) => [model, at]));
  // Requests that waited are drawn last, above the others.
  for (const one of requests.toSorted((a, b) => Number(hasWaited(a)) - Number(hasWaited(b)))) {
    parts.push(dotOf(one, x, y(rowOf.get(one.model) ?? 0) + ROW / 2));
  }
  const font = `font-family="Inter, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" ${font}>\n${parts.join('\n')}\n</svg>\n`;
}

const hasWaited = ({ tier, failure }: Picture['requests'][number]) => tier !== 'gpu' || failure !== undefined;

/** A dot at the arrival, and for a request that waited a line to its answer. */
function dotOf(one: Picture['requests'][number], x: (at: number) => number, y: number): string {
  const left = n(x(one.at));
  if (!hasWaited(one)) return `<circle cx="${left}" cy="${y}" r="1.7" fill="#ffffff" fill-opacity="0.9"/>`;
  const colour = one.failure === undefined ? WAITED : FAILED;
  const line = `<path d="M${left} ${y}H${n(x(one.at + one.milliseconds))}" stroke="${colour}" stroke-width="2"/>`;
  return `${line}<circle cx="${left}" cy="${y}" r="3.2" fill="${colour}" stroke="#ffffff" stroke-width="0.8"/>`;
}

function axis(x: (at: number) => number, bottom: number, { from, to }: Pick<Picture, 'from' | 'to'>): string[] {
  const parts: string[] = [];
  for (let second = 0; from + second * 1_000 <= to; second += TICK_SECONDS) {
    const at = n(x(from + second * 1_000));
    parts.push(`<path d="M${at} ${TOP - 4}V${bottom + 5}" stroke="${INK}" stroke-opacity="0.12"/>`);
    parts.push(text(at, bottom + 20, `${second} s`, { anchor: 'middle', fill: MUTED }));
  }
  return parts;
}

function legend(): string[] {
  const parts: string[] = [];
  let left = LEFT;
  const label = (mark: string, words: string) => {
    parts.push(mark, text(left + 18, 84, words, { fill: INK }));
    left += 18 + words.length * 5.6 + 20;
  };
  for (const tier of tiers) {
    const stroke = tier === 'blob' ? ` stroke="${MUTED}" stroke-opacity="0.4"` : '';
    label(`<rect x="${left}" y="75" width="13" height="10" fill="${COLOURS[tier]}"${stroke}/>`, MEANING[tier]);
  }
  label(
    `<rect x="${left}" y="75" width="13" height="10" fill="${COLOURS.gpu}"/><circle cx="${left + 6.5}" cy="80" r="1.7" fill="#ffffff"/>`,
    'request, loaded',
  );
  label(`<circle cx="${left + 7}" cy="80" r="3.2" fill="${WAITED}"/>`, 'request that waited');
  return parts;
}

// A chart of one scenario as SVG: time to the answer over the run, a line for each policy.

/** A line of a chart. Absent values leave a gap. */
export interface Line {
  readonly name: string;
  readonly values: readonly (number | undefined)[];
}

const [WIDTH, HEIGHT] = [760, 300];
const PLOT = { left: 64, right: 600, top: 40, bottom: 256 };
/** Colours of Okabe and Ito, which people with any colour vision tell apart; ours is the first. */
const COLOURS = ['#0072b2', '#000000', '#e69f00', '#cc79a7', '#009e73', '#d55e00'];
/** Values a decade apart on the logarithmic axis, ms. */
const DECADES = [100, 1_000, 10_000, 100_000];

const clamp = (value: number): number => Math.min(DECADES.at(-1) as number, Math.max(DECADES[0] as number, value));

function yOf(ms: number, top: number): number {
  const [low, high] = [Math.log10(DECADES[0] as number), Math.log10(top)];
  const part = (Math.log10(Math.min(clamp(ms), top)) - low) / (high - low);
  return PLOT.bottom - part * (PLOT.bottom - PLOT.top);
}

/** Means of `width` seconds each, so that a line shows its course and not its noise. */
function smooth(values: readonly (number | undefined)[], width: number): (number | undefined)[] {
  return Array.from({ length: Math.ceil(values.length / width) }, (_, at) => {
    const some = values.slice(at * width, (at + 1) * width).filter((value) => value !== undefined);
    return some.length > 0 ? some.reduce((sum, value) => sum + value, 0) / some.length : undefined;
  });
}

const escapeText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function pathOf(values: readonly (number | undefined)[], top: number): string {
  const step = (PLOT.right - PLOT.left) / values.length;
  let pen = 'M';
  return values
    .flatMap((value, at) => {
      if (value === undefined) {
        pen = 'M';
        return [];
      }
      const point = `${pen}${(PLOT.left + (at + 0.5) * step).toFixed(1)} ${yOf(value, top).toFixed(1)}`;
      pen = 'L';
      return [point];
    })
    .join('');
}

/** Labels at the right of the lines, moved apart where they would overlap. */
function placeLabels(wanted: readonly number[]): number[] {
  const order = wanted.map((_, at) => at).sort((a, b) => (wanted[a] as number) - (wanted[b] as number));
  const placed: number[] = [];
  let last = PLOT.top - 14;
  for (const [rank, at] of order.entries()) {
    const lowest = PLOT.bottom - 14 * (order.length - 1 - rank);
    last = Math.max(last + 14, Math.min(lowest, wanted[at] as number));
    placed[at] = last;
  }
  return placed;
}

/** Draws the milliseconds of `lines`, one value a second, on a logarithmic axis. */
export function drawChart(title: string, lines: readonly Line[]): string {
  const seconds = Math.max(...lines.map(({ values }) => values.length));
  const smoothed = lines.map((line) => smooth(line.values, Math.max(1, Math.round(seconds / 40))));
  const most = Math.max(1_000, ...smoothed.flatMap((values) => values.filter((value) => value !== undefined)));
  const top = DECADES.find((decade) => decade >= most) ?? (DECADES.at(-1) as number);
  const ticks = DECADES.filter((decade) => decade <= top).map((decade) => {
    const y = yOf(decade, top).toFixed(1);
    const label = decade < 1_000 ? `${decade} ms` : `${decade / 1_000} s`;
    return `<path d="M${PLOT.left} ${y}H${PLOT.right}" stroke="#ddd"/><text x="${PLOT.left - 8}" y="${y}" dy="4" text-anchor="end">${label}</text>`;
  });
  const times = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const x = PLOT.left + part * (PLOT.right - PLOT.left);
    return `<text x="${x}" y="${PLOT.bottom + 18}" text-anchor="middle">${Math.round(part * seconds)} s</text>`;
  });
  const ends = smoothed.map((values) => yOf(values.findLast((value) => value !== undefined) ?? 100, top));
  const labels = placeLabels(ends);
  const drawn = lines.map(({ name }, at) => {
    const colour = COLOURS[at % COLOURS.length];
    const width = at === 0 ? 3 : 1.5;
    const label = `<text x="${PLOT.right + 10}" y="${(labels[at] as number).toFixed(1)}" dy="4" fill="${colour}">${escapeText(name)}</text>`;
    return `<path d="${pathOf(smoothed[at] ?? [], top)}" fill="none" stroke="${colour}" stroke-width="${width}"/>${label}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${PLOT.left}" y="22" font-size="15" font-weight="bold">${escapeText(title)}</text>`,
    ...ticks,
    ...times,
    // Ours is drawn last, above the others.
    ...drawn.toReversed(),
    `<text x="${(PLOT.left + PLOT.right) / 2}" y="${PLOT.bottom + 36}" text-anchor="middle">mean time to the answer by the second of the request</text>`,
    '</svg>\n',
  ].join('\n');
}

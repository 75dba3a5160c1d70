// Table of entries: searchable, paged, each expandable to the whole entry.
import { contentOf, type Overview, type Row, searchRows } from './overview.ts';
import { element, make } from './page-elements.ts';

/** Entries that verify.html prints: some 25 pages. More are in the tables of the export. */
const PRINTED_ENTRIES_MAX = 1_000;

const PAGE_ROWS = 50;

/** Shows successive overviews in the same table. */
export class EntriesTable {
  #all: Overview | undefined;
  #found: readonly Row[] = [];
  #page = 0;

  constructor() {
    const again = (): void => this.#search();
    element('search').addEventListener('input', again);
    element('type').addEventListener('change', again);
    element('back').addEventListener('click', () => this.#turn(-1));
    element('next').addEventListener('click', () => this.#turn(1));
    addEventListener('beforeprint', () => this.#show(0, PRINTED_ENTRIES_MAX));
    addEventListener('afterprint', () => this.#show(this.#page, PAGE_ROWS));
  }

  open(overview: Overview): void {
    this.#all = overview;
    element<HTMLInputElement>('search').value = '';
    const options = overview.types.map(([type]) => make('option', type));
    const all = make('option', 'All types') as HTMLOptionElement;
    all.value = '';
    element('type').replaceChildren(all, ...options);
    this.#search();
  }

  #search(): void {
    const text = element<HTMLInputElement>('search').value;
    const type = element<HTMLSelectElement>('type').value;
    this.#found = searchRows(this.#all?.rows ?? [], text, type);
    this.#page = 0;
    this.#show(0, PAGE_ROWS);
  }

  #turn(by: number): void {
    this.#page += by;
    this.#show(this.#page, PAGE_ROWS);
  }

  #show(page: number, rows: number): void {
    const from = page * rows;
    const shown = this.#found.slice(from, from + rows);
    element('entries').replaceChildren(...shown.flatMap(rowsOf));
    element<HTMLButtonElement>('back').disabled = page === 0;
    element<HTMLButtonElement>('next').disabled = from + rows >= this.#found.length;
    const range = shown.length === 0 ? 'None' : `${count(from + 1)} to ${count(from + shown.length)}`;
    element('range').textContent = `${range} of ${count(this.#found.length)}${this.#beyond()}`;
  }

  #beyond(): string {
    const { entries = 0, rows = [] } = this.#all ?? {};
    return entries > rows.length ? `; the export has ${count(entries)}, and the first are kept here` : '';
  }
}

const count = (number: number): string => number.toLocaleString('en');

/** Milliseconds since 1970, in UTC and to the second. */
export const timeText = (time: number): string =>
  Math.abs(time) > 8.64e15
    ? '–'
    : new Date(time)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, ' UTC');

/** A row, and below it the whole entry once it is expanded. */
function rowsOf(row: Row): HTMLElement[] {
  const line = document.createElement('tr');
  const button = make('button', row.id) as HTMLButtonElement;
  button.type = 'button';
  button.setAttribute('aria-expanded', 'false');
  const last = document.createElement('td');
  last.append(button);
  const number = make('td', row.tseq === undefined ? '–' : count(row.tseq));
  number.className = 'number';
  line.append(number, make('td', timeText(row.time)), make('td', row.type), last);
  button.addEventListener('click', () => {
    const open = button.getAttribute('aria-expanded') === 'true';
    button.setAttribute('aria-expanded', String(!open));
    if (open) line.nextElementSibling?.remove();
    else line.after(wholeOf(row));
  });
  return [line];
}

function wholeOf(row: Row): HTMLElement {
  const [line, cell, text] = [document.createElement('tr'), document.createElement('td'), make('pre', contentOf(row))];
  line.className = 'whole';
  cell.colSpan = 4;
  cell.append(text);
  line.append(cell);
  return line;
}

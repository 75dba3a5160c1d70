// Elements of the page, found and made. Texts of a bundle become text nodes, never markup.

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found as T;
}

export function make(name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/** A table row with a header cell and a value. */
export function rowOf(name: string, value: string): HTMLElement {
  const [row, head] = [document.createElement('tr'), make('th', name) as HTMLTableCellElement];
  head.scope = 'row';
  row.append(head, make('td', value));
  return row;
}

/** Escapes characters of foreign text that control a terminal or hide something: all but letters, signs and spaces. */
export const printable = (text: string): string =>
  text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);

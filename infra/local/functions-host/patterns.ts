// The small languages inside bindings: `%SETTING%`, `container/{name}.wav`, `api/uploads/{id:guid?}`. Pure.

const QUOTED = /[.*+?^${}()|[\]\\]/g;
const quote = (literal: string) => literal.replace(QUOTED, '\\$&');

/**
 * Fills in application settings (`%NAME%`). Throws for a missing one, as the host in the cloud refuses it.
 */
export function fillSettings(template: string, settings: Record<string, string | undefined>): string {
  return template.replace(/%([^%]+)%/g, (_, name: string) => {
    const value = settings[name];
    if (value === undefined) throw new Error(`the binding uses %${name}%, which is not set`);
    return value;
  });
}

/**
 * Fills `{name}` of an output path from the trigger's data, and the two values that the platform generates.
 */
export function fillPath(
  template: string,
  known: Record<string, string>,
  random: () => string,
  now: () => Date,
): string {
  return template.replace(/\{([^}]+)\}/g, (_, name: string) => {
    if (name === 'rand-guid') return random();
    if (name === 'DateTime') return now().toISOString();
    const value = known[name];
    if (value === undefined) throw new Error(`the output path uses {${name}}, which the trigger does not give`);
    return value;
  });
}

export type Matcher = (candidate: string) => Record<string, string> | undefined;

/** Parses `uploads/{tenant}/{name}.wav` into the container, and a matcher of the names in a blob's name. */
export function blobPattern(path: string): { container: string; match: Matcher } {
  const slash = path.indexOf('/');
  if (slash < 0) return { container: path, match: () => ({}) };
  const names: string[] = [];
  const pieces = path.slice(slash + 1).split(/\{([^}]+)\}/);
  let source = '';
  for (const [index, piece] of pieces.entries()) {
    if (index % 2 === 0) {
      source += quote(piece);
      continue;
    }
    names.push(piece);
    // The platform lets the last name (and `name`) span slashes; the others stop at one.
    const isLast = index === pieces.length - 2;
    source += piece === 'name' || isLast ? '(.+)' : '([^/]+)';
  }
  return { container: path.slice(0, slash), match: matcher(new RegExp(`^${source}$`), names, (raw) => raw) };
}

const CONSTRAINTS: Record<string, string> = {
  int: '-?\\d+',
  long: '-?\\d+',
  guid: '[0-9a-fA-F-]{36}',
  alpha: '[a-zA-Z]+',
};

/** An ASP.NET route template: `{id}`, `{id:guid}`, `{id?}`, `{*rest}`. */
export function routePattern(route: string): Matcher {
  const names: string[] = [];
  let source = '^';
  for (const segment of route.replace(/^\//, '').split('/')) {
    const parameter = /^\{(\*?)([^:}?]+)(?::([^}?]+))?(\?)?\}$/.exec(segment);
    if (!parameter) {
      source += `/${quote(segment)}`;
      continue;
    }
    const [, rest, name, constraint, optional] = parameter;
    names.push(name as string);
    const value = rest ? '.*' : (CONSTRAINTS[constraint ?? ''] ?? '[^/]+');
    source += optional ? `(?:/(${value}))?` : `/(${value})`;
  }
  return matcher(new RegExp(`${source}/?$`, 'i'), names, decodeURIComponent);
}

function matcher(pattern: RegExp, names: string[], decode: (raw: string) => string): Matcher {
  return (candidate) => {
    const found = pattern.exec(candidate);
    if (!found) return undefined;
    const values: Record<string, string> = {};
    for (const [index, name] of names.entries()) {
      const raw = found[index + 1];
      if (raw !== undefined) values[name] = decode(raw);
    }
    return values;
  };
}

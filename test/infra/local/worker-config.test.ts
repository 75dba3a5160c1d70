import { describe, expect, it } from 'vitest';
import { readWorkerConfig, stripComments } from '../../../infra/local/worker-config.ts';

describe('wrangler.jsonc', () => {
  it('loses comments and trailing commas, and no text', () => {
    const text = `{
      // a comment with "quotes"
      "url": "https://example.com/*not a comment*/", /* another
      one */
      "quoted": "a \\"// b\\",]",
      "list": [1, 2,],
    }`;
    expect(JSON.parse(stripComments(text))).toEqual({
      url: 'https://example.com/*not a comment*/',
      quoted: 'a "// b",]',
      list: [1, 2],
    });
  });

  it('names the Durable Objects of the edge', () => {
    const config = readWorkerConfig('edge/wrangler.jsonc');
    expect(config.compatibility_date).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(config.durable_objects.bindings).toContainEqual({ name: 'GATE', class_name: 'Gate' });
    expect(config.durable_objects.bindings).toContainEqual({ name: 'ROSTER', class_name: 'Roster' });
  });
});

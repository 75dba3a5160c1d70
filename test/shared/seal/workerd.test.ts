import { build } from 'esbuild';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { describe, expect, it } from 'vitest';
import vectors from '../../vectors/seal/v1.json' with { type: 'json' };

describe('C5 A21 the seal in workerd', () => {
  it('gives the same bytes as in Node, and streams', async () => {
    const bundle = await build({
      stdin: {
        contents: "import { answer } from './in-workerd.ts'; export default { fetch: answer };",
        resolveDir: import.meta.dirname,
      },
      bundle: true,
      format: 'esm',
      write: false,
    });
    const script = bundle.outputFiles[0]?.text ?? '';
    const worker = new Miniflare(
      convertV4MiniflareOptions({ modules: true, script, compatibilityDate: '2026-08-04', cf: false }),
    );
    try {
      const body = new Uint8Array(1_000_000);
      const response = await worker.dispatchFetch('http://seal/', { method: 'POST', body });
      expect(await response.json()).toEqual({
        records: vectors.records.map(({ record }) => record),
        bytes: body.length,
        refusals: 0,
        finished: true,
        offCurve: false,
      });
    } finally {
      await worker.dispose();
    }
  }, 30_000);
});

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, expectTypeOf, it } from 'vitest';
import type { StreamFormat, StreamOptions } from '../../../edge/client/contract.ts';
import { buildClient, bundleClient } from '../../../infra/local/build-client.ts';
import { ROOT } from '../../../infra/local/root.ts';
import type * as format from '../../../shared/stream/format.ts';
import type * as link from '../../../shared/stream/link.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-client-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Names that Chrome 100, Firefox 100 or Safari 15.4 lack (MDN's compatibility data). esbuild lowers syntax only;
 * edge/client/tsconfig.json leaves the newer names of the language out as well.
 */
const TOO_NEW = [
  /\bAbortSignal\.(any|timeout)\b/,
  /\bPromise\.(withResolvers|try)\b/,
  /\bArray\.fromAsync\b/,
  /\b(Object|Map)\.groupBy\b/,
  /\bIterator\b/,
  /\bIntl\.Segmenter\b/,
  /\bReadableStream\.from\b/,
  /\bURL\.(canParse|parse)\b/,
  /\bResponse\.json\b/,
  /\bSymbol\.(dispose|asyncDispose)\b/,
  /\bUint8Array\.from(Base64|Hex)\b/,
  /\b(CompressionStream|DecompressionStream|WebSocketStream|OffscreenCanvas|requestIdleCallback|SuppressedError)\b/,
  /\bnavigator\.(locks|userActivation|audioSession)\b/,
  /\.(findLast|findLastIndex|toSorted|toReversed|toSpliced|isWellFormed|toWellFormed|transferToFixedLength)\(/,
  /\.(union|intersection|difference|symmetricDifference|isSubsetOf|isSupersetOf|isDisjointFrom)\(/,
  /\.(toBase64|toHex|setFromBase64|setFromHex|getOrInsert|bytes)\(/,
  // Lookbehind: Safari 16.4.
  /\(\?<[=!]/,
];
const tooNew = (script: string) => TOO_NEW.flatMap((one) => one.exec(script)?.[0] ?? []);

/** A program of an app, which has neither Node's types nor Auricle's source. */
const APP = `import { type FinalEvent, openMicrophone, openStream, StreamError } from './auricle.js';
export async function run(token: () => Promise<string>): Promise<FinalEvent> {
  const microphone = await openMicrophone({ noiseSuppression: false });
  const stream = openStream({ url: 'https://edge.test/v1/stream', token, model: 'm', format: microphone.format });
  stream.sendAll(microphone).catch((error: unknown) => error instanceof StreamError && error.reason);
  for await (const event of stream.events) if (event.type === 'segment') console.log(event.words[0]?.start);
  // @ts-expect-error: options are typed.
  stream.setOptions({ interim: 1 });
  return stream.end();
}
`;

describe('U14 npm run build:client', () => {
  it('uses nothing that browsers of 2022 lack', async () => {
    expect(tooNew(await bundleClient())).toEqual([]);
    expect(tooNew('AbortSignal.any([]); list.toSorted(); /(?<=a)b/')).toHaveLength(3);
  });

  it('writes one module, and types without Auricle’s source', async () => {
    await buildClient(folder);
    const built = await import(pathToFileURL(path.join(folder, 'auricle.js')).href);
    expect(Object.keys(built).sort()).toEqual(['StreamError', 'openMicrophone', 'openStream']);
    writeFileSync(path.join(folder, 'app.ts'), APP);
    const compilerOptions = { strict: true, noEmit: true, module: 'nodenext', target: 'es2022', types: [] };
    const lib = ['es2022', 'dom'];
    writeFileSync(
      path.join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...compilerOptions, lib }, files: ['app.ts'] }),
    );
    const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
    // Throws, and shows the problem, when the types are wrong.
    execFileSync(process.execPath, [tsc, '-p', folder], { stdio: ['ignore', 2, 2] });
  });

  it('has the formats and options of the protocol', () => {
    expectTypeOf<StreamFormat>().toEqualTypeOf<Readonly<format.StreamFormat>>();
    expectTypeOf<StreamOptions>().toEqualTypeOf<Readonly<link.StreamOptions>>();
  });
});

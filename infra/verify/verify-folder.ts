// verify.mjs: verifies a bundle with nothing but Node and the bundle's own files.
//
//  node verify.mjs [FOLDER|ARCHIVE] [--policy FILE] [--head NOTE] [--tenant NAME] [--after N] [--json]
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { reportText } from '../../shared/audit/verify/report.ts';
import { verifyBundle } from '../../shared/audit/verify/verify-bundle.ts';
import { nativeHashing } from '../cli/audit/native-hash.ts';
import { openPath } from './open-path.ts';

const USAGE = `node verify.mjs [FOLDER|ARCHIVE] [--policy FILE] [--head NOTE] [--tenant NAME] [--after N] [--json]

  FOLDER         the bundle, or a zip of it; default: where this file is
  --policy FILE  whom to believe (C2SP tlog-policy); without it the bundle's own policy.txt
  --head NOTE    a checkpoint of the log that you have from elsewhere: has the log grown from it?
  --tenant NAME  whose bundle it has to be
  --after N      last number of the tenant in the logs before this one, where the bundle does not show it

Exit codes: 0 valid, complete and witnessed; 10 not witnessed; 20 something is missing; 30 not the log of --head;
40 not valid; 50 this is no export; 2 this could not be run.
`;

const options = {
  policy: { type: 'string' },
  head: { type: 'string' },
  tenant: { type: 'string' },
  after: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

async function run(): Promise<number> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options });
  const { policy, head, tenant, after } = values;
  if (values.help || positionals.length > 1 || !/^\d{0,15}$/.test(after ?? '')) {
    process.stdout.write(USAGE);
    return values.help ? 0 : 2;
  }
  const folder = positionals[0] ?? fileURLToPath(new URL('.', import.meta.url));
  const report = await verifyBundle(await openPath(folder), {
    now: Date.now(),
    hashing: nativeHashing,
    ...(policy !== undefined && { policy: readFileSync(policy) }),
    ...(head !== undefined && { head: readFileSync(head) }),
    ...(tenant !== undefined && { tenant }),
    ...(after !== undefined && { after: Number(after) }),
  });
  process.stdout.write(`${values.json ? JSON.stringify(report, undefined, 2) : reportText(report)}\n`);
  return report.exit;
}

try {
  process.exitCode = await run();
} catch (error) {
  process.stderr.write(`verify.mjs could not be run: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}

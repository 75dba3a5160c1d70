// What a run of the tests came to: `node verdict.mjs REPORT` (vitest's JSON) prints one line "PASSED FAILED" and one line with the
// files that failed and may be run again, relative to this folder's parent; what failed and why goes to standard error.
import { readFileSync } from 'node:fs';
import path from 'node:path';

const REASON_CHARS_MAX = 1500;
const root = path.resolve(import.meta.dirname, '..');
const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

let broken = 0;
let counterexample = false;
const files = [];
for (const file of testResults.filter(({ status }) => status === 'failed')) {
  const name = path.relative(root, file.name);
  const failures = file.assertionResults.filter(({ status }) => status === 'failed');
  // A file that cannot even be loaded has no failed test, but it has failed.
  if (failures.length === 0) {
    broken += 1;
    failures.push({ fullName: 'could not be run', failureMessages: [file.message] });
  }
  files.push(name);
  for (const { fullName, failureMessages } of failures) {
    // A generated case that breaks a property stays broken, whether or not the next run draws it again; nothing that was
    // lost or there twice is a matter of time.
    counterexample ||= failureMessages.some((message) => /Property failed after|\bSEED=|\bseed \d/.test(message));
    const why = failureMessages.join('\n').slice(0, REASON_CHARS_MAX).replaceAll('\n', '\n    ');
    console.error(`${name}\n  ${fullName}\n    ${why}`);
  }
}
console.log(`${numPassedTests} ${numFailedTests + broken}`);
console.log(counterexample ? '' : files.join(' '));

// Prints "PASSED FAILED" of a vitest JSON report: `node verdict.mjs REPORT`. Standard error names each failure.
import { readFileSync } from 'node:fs';
import path from 'node:path';

const REASON_CHARS_MAX = 1500;
const root = path.resolve(import.meta.dirname, '..');
const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

let broken = 0;
for (const file of testResults.filter(({ status }) => status === 'failed')) {
  const failures = file.assertionResults.filter(({ status }) => status === 'failed');
  // A file that cannot be loaded has no failed test, but it has failed.
  if (failures.length === 0) {
    broken += 1;
    failures.push({ fullName: 'could not be run', failureMessages: [file.message] });
  }
  for (const { fullName, failureMessages } of failures) {
    const why = failureMessages.join('\n').slice(0, REASON_CHARS_MAX).replaceAll('\n', '\n    ');
    console.error(`${path.relative(root, file.name)}\n  ${fullName}\n    ${why}`);
  }
}
console.log(`${numPassedTests} ${numFailedTests + broken}`);

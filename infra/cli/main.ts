import process from 'node:process';
import { commandLine } from './command-line.ts';

const { exit, out, err } = await commandLine(process.argv.slice(2), process.env);
process.stdout.write(out);
process.stderr.write(err);
process.exitCode = exit;

// `npm run release -- X.Y.Z`: on a clean, green main, writes the version and the changelog's date, commits and tags.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { dateChangelog } from './changelog.ts';
import { ROOT } from './root.ts';

const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
const show = (command: string, ...args: string[]) => execFileSync(command, args, { cwd: ROOT, stdio: 'inherit' });

function refuse(problem: string): never {
  console.error(`release: ${problem}`);
  process.exit(1);
}

const version = process.argv[2] ?? '';
const tag = `v${version}`;
const changelog = path.join(ROOT, '.github/CHANGELOG.md');
const { version: current } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string };
const date = new Date().toISOString().slice(0, 10);

const dated = dateChangelog(readFileSync(changelog, 'utf8'), { version, current, date });
if (!dated.ok) refuse(dated.problem);
if (git('branch', '--show-current') !== 'main') refuse('not on main');
if (git('status', '--porcelain') !== '') refuse('the working tree is not clean');
if (git('tag', '--list', tag) !== '') refuse(`${tag} exists`);
try {
  show('.ci/run');
} catch {
  refuse('main is not green');
}

writeFileSync(changelog, dated.text);
const chart = path.join(ROOT, 'infra/pool/chart/Chart.yaml');
writeFileSync(chart, readFileSync(chart, 'utf8').replace(/^(version|appVersion): .*$/gm, `$1: ${version}`));
show('npm', 'version', version, '--no-git-tag-version');
git('commit', '-am', `Release ${version}`);
git('tag', '-a', tag, '-m', `Auricle ${version}`);
console.log(`${tag} is tagged here. Publish it with: git push --atomic origin main ${tag}`);

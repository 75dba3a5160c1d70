// Runs terraform without an account: plans of infra/aws with doubled providers.
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { ROOT } from '../../infra/local/root.ts';
import { run } from '../../infra/pool/triton/run.ts';

/** Folders of providers that lie on this machine; no package registry has terraform or them. */
const MIRRORS = [process.env.AURICLE_TERRAFORM_PLUGINS, '/opt/tf-plugins', '/usr/share/terraform/plugins'];

export interface Change {
  readonly address: string;
  readonly type: string;
  readonly name: string;
  readonly change: { readonly after: Readonly<Record<string, unknown>> };
}

/** Returns the folder of AWS's provider, where terraform and it are on this machine. */
export async function findMirror(): Promise<string | undefined> {
  if (!(await run('terraform', ['version'])).ok) return undefined;
  return MIRRORS.find((folder) => folder && existsSync(path.join(folder, 'registry.terraform.io/hashicorp/aws')));
}

/** Runs `terraform test` on a copy of infra/aws. Returns its summary, and the planned changes of each run. */
export async function planAws(mirror: string): Promise<{ passed: number; plans: Map<string, readonly Change[]> }> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-aws-'));
  try {
    for (const file of globSync('infra/aws/*.{tf,hcl}', { cwd: ROOT }))
      cpSync(path.join(ROOT, file), path.join(folder, path.basename(file)));
    const config = path.join(folder, 'terraform.rc');
    writeFileSync(config, `provider_installation {\n  filesystem_mirror { path = "${mirror}" }\n}\n`);
    const environment = { ...process.env, TF_CLI_CONFIG_FILE: config, TF_IN_AUTOMATION: '1', CHECKPOINT_DISABLE: '1' };
    const at = `-chdir=${folder}`;
    const report = path.join(folder, 'report.ndjson');
    for (const [command, ...words] of [
      ['terraform', at, 'init', '-backend=false', '-input=false', '-no-color'],
      // The report has the schema of the provider: tens of megabytes.
      ['sh', '-c', `terraform "${at}" test -json -verbose > "${report}"`],
    ] as const) {
      const ran = await run(command, words, environment);
      if (!ran.ok) throw new Error(`terraform: ${ran.lastLine} ${existsSync(report) ? firstError(report) : ''}`);
    }
    const lines = readFileSync(report, 'utf8').trim().split('\n');
    const plans = lines.filter((line) => line.includes('"test_plan"')).map((line) => JSON.parse(line));
    const summary = JSON.parse(lines.at(-1) ?? '{}').test_summary;
    return {
      passed: summary.passed,
      plans: new Map(plans.map((line) => [line['@testrun'], line.test_plan.resource_changes])),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const firstError = (report: string): string =>
  /"@message":"(Error[^"]*)"/.exec(readFileSync(report, 'utf8'))?.[1] ?? '';

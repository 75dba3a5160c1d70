// Resources of AWS, planned by terraform where it and its provider are on this machine, against the names in the code.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { JOB_RECEIVES_MAX } from '../../functions/store/jobs.ts';
import { ROOT } from '../../infra/local/root.ts';
import { deadQueue, jobQueue, lightQueue } from '../../shared/jobs/job.ts';
import { JOB_VISIBILITY_S } from '../../shared/jobs/limits.ts';
import { type Change, findMirror, planAws } from './terraform.ts';

const mirror = await findMirror();
if (mirror === undefined)
  console.log('test:cloud: no terraform 1.9 with the provider hashicorp/aws here: infra/aws was not planned');

const read = (file: string) => readFileSync(path.join(ROOT, 'infra/aws', file), 'utf8');

describe('queues and code', () => {
  it('T7 visibility and receives are those of the functions', () => {
    const queues = read('queues.tf');
    expect(queues).toMatch(new RegExp(`visibility_timeout_seconds = ${JOB_VISIBILITY_S}$`, 'm'));
    expect(queues).toMatch(new RegExp(`maxReceiveCount += ${JOB_RECEIVES_MAX}$`, 'm'));
  });

  it('T7 roles allow the calls that the code makes, and no others', () => {
    const calls = (file: string) => {
      const [, names = ''] =
        /import \{([^}]*)\} from '@aws-sdk\/client-sqs'/.exec(readFileSync(path.join(ROOT, file), 'utf8')) ?? [];
      // A batch is allowed by the action of one message; pages of a list by the list.
      const commands = [...names.matchAll(/(\w+?)(?:Batch)?Command\b/g)].map(([, name]) => `sqs:${name}`);
      return [...commands, ...(names.includes('paginateListQueues') ? ['sqs:ListQueues'] : [])].sort();
    };
    const granted = (name: string) => {
      const [, block = ''] = new RegExp(`^  ${name} = \\[([\\s\\S]*?)^  \\S`, 'm').exec(read('roles.tf')) ?? [];
      return [...new Set(block.match(/sqs:\w+/g))].sort();
    };
    expect(granted('take')).toEqual(calls('infra/pool/agent/jobs/job-queue.ts'));
    // `take` and the replay share two actions; each list has all of its own.
    expect(granted('send')).toEqual(calls('functions/store/jobs.ts'));
  });
});

describe.runIf(mirror !== undefined)('planned resources', () => {
  let plans: Map<string, readonly Change[]>;
  const ofType = (run: string, type: string) => (plans.get(run) ?? []).filter((one) => one.type === type);

  beforeAll(async () => {
    const planned = await planAws(mirror ?? '');
    expect(planned.passed).toBe(3);
    plans = planned.plans;
  });

  it('T7 queues have the names that functions and agents expect', () => {
    const models = ['reference-en', 'acme/voice 2: a long name of a model'];
    const names = ['eu', 'us'].flatMap((zone) => [
      deadQueue('jobs', zone),
      ...models.flatMap((model) => [jobQueue('jobs', zone, model), lightQueue('jobs', zone, model)]),
    ]);
    const planned = ofType('whole', 'aws_sqs_queue').map(({ change }) => change.after.name);
    expect(planned.sort()).toEqual(names.sort());
  });

  it('T7 secrets of the cluster are under a key of the account that rotates', () => {
    const [cluster] = ofType('whole', 'aws_eks_cluster');
    expect(cluster?.change.after).toMatchObject({
      encryption_config: [{ resources: ['secrets'] }],
      vpc_config: [{ public_access_cidrs: ['203.0.113.0/24'] }],
      access_config: [{ authentication_mode: 'API' }],
    });
    expect(ofType('whole', 'aws_kms_key')[0]?.change.after).toMatchObject({ enable_key_rotation: true });
  });

  it('T7 the GPU nodes scale from nothing and take pools only', () => {
    const gpu = ofType('whole', 'aws_eks_node_group').find(({ name }) => name === 'gpu');
    expect(gpu?.change.after).toMatchObject({
      ami_type: 'AL2023_x86_64_NVIDIA',
      scaling_config: [{ min_size: 0 }],
      taint: [{ key: 'nvidia.com/gpu', effect: 'NO_SCHEDULE' }],
    });
    for (const { change } of ofType('whole', 'aws_launch_template'))
      expect(change.after).toMatchObject({ metadata_options: [{ http_tokens: 'required' }] });
  });
});

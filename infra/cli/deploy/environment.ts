// The name, zones and pools of an environment, and the addresses that follow from them.
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';

export interface PoolPlan {
  readonly name: string;
  readonly zone: string;
}

export interface EnvironmentPlan {
  /** Short name; with a zone behind it the prefix of names on Azure. */
  readonly name: string;
  /** Host of the edge. */
  readonly domain: string;
  readonly zones: readonly string[];
  readonly pools: readonly PoolPlan[];
}

const NAME = /^[a-z][a-z0-9]{1,7}$/;
const ZONE = /^[a-z][a-z0-9]{0,3}$/;
const POOL = /^[a-z0-9][a-z0-9-]{0,40}$/;
const HOST = /^(?=.{4,200}$)[a-z0-9-]+(\.[a-z0-9-]+)+$/;

export function planEnvironment(given: Pick<Arguments, 'domain' | 'operands' | 'pools' | 'zones'>) {
  const [, name = ''] = given.operands;
  const zones = given.zones.split(',');
  const pools = (given.pools ?? zones.map((zone) => `pool-${zone}=${zone}`).join(','))
    .split(',')
    .map((pair): PoolPlan => ({ name: pair.split('=')[0] ?? '', zone: pair.split('=')[1] ?? '' }));
  const problem = problemOf({ name, zones, pools, domain: given.domain ?? '' });
  return problem ?? { name, zones, pools, domain: given.domain ?? '' };
}

function problemOf({ name, domain, zones, pools }: EnvironmentPlan): Answer | undefined {
  // Azure bounds names of storage accounts: 24 small letters and digits, `data` or `host` behind name and zone.
  if (!NAME.test(name)) return wrong(`${name} is no name of an environment: 2 to 8 small letters and digits`);
  if (!HOST.test(domain)) return wrong('missing --domain HOST: the host of the edge, for example speech.example');
  const zone = zones.find((one) => !ZONE.test(one));
  if (zone !== undefined) return wrong(`${zone} is no zone: up to 4 small letters and digits, a letter first`);
  const pool = pools.find((one) => !POOL.test(one.name) || !zones.includes(one.zone));
  return pool && wrong(`--pools ${pool.name}=${pool.zone}: NAME=ZONE with a zone of ${zones.join(', ')}`);
}

/** Base URL of the functions of a zone, as infra/azure/main.bicep names the app. */
export const functionsUrl = ({ name }: EnvironmentPlan, zone: string): string =>
  `https://${name}${zone}-functions.azurewebsites.net`;

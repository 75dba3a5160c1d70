import { describe, expect, it } from 'vitest';
import { VersionStatistics } from '../../../infra/pool/engine/batch/statistics.ts';
import { renderMetrics } from '../../../infra/pool/engine/http/metrics.ts';
import type { Served } from '../../../infra/pool/engine/model/served.ts';
import { emptyMessage } from '../../../infra/pool/models/config/value.ts';

const served = (name: string, sequences: number | undefined): Served => ({
  name,
  version: 1,
  config: emptyMessage('ModelConfig'),
  statistics: Object.assign(new VersionStatistics(), { expiredSequences: 3 }),
  pending: 0,
  takesSequences: sequences !== undefined,
  sequences,
  memoryBytes: 0,
  lease: () => expect.fail('not leased'),
  infer: () => Promise.reject(new Error('not asked')),
  close: async () => {},
});

describe('R14: the metrics page', () => {
  it('A5: counts sequences of stateful models only', () => {
    const lines = renderMetrics([served('stream', 2), served('plain', undefined)]).split('\n');
    const rows = lines.filter((line) => line.startsWith('auricle_engine_sequences'));
    expect(rows).toEqual([
      'auricle_engine_sequences{model="stream",version="1"} 2',
      'auricle_engine_sequences_expired_total{model="stream",version="1"} 3',
    ]);
  });
});

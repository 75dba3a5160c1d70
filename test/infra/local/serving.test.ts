import { expect, it } from 'vitest';
import { evaluateServing, withReasons } from '../../../infra/local/serving.ts';

const pools = ['aks-westeurope', 'eks-us-east-1'];

it('serves when every pool offers a model', () => {
  expect(
    evaluateServing(
      {
        data: [
          { id: 'a', pools: ['aks-westeurope'] },
          { id: 'b', pools: ['eks-us-east-1'] },
        ],
      },
      pools,
    ),
  ).toBe('serving');
});

it('reports the missing part', () => {
  expect(evaluateServing({ data: [{ id: 'a', pools: ['aks-westeurope'] }] }, pools)).toContain('eks-us-east-1');
  expect(evaluateServing({ data: [] }, pools)).toContain('aks-westeurope');
  expect(evaluateServing('oops', pools)).toContain('something else');
});

it('A4: names the reason for which the roster refuses an agent', () => {
  const why = "The roster does not accept this report. Reason: the agent's clock is 600 s ahead.";
  const joined = evaluateServing({ data: [] }, ['aks-westeurope']);
  expect(withReasons(joined, { refused: [{ pool: 'aks-westeurope', why }] })).toBe(
    `not in the roster yet: aks-westeurope; aks-westeurope: ${why}`,
  );
  expect(withReasons(joined, { data: [] })).toBe(joined);
});

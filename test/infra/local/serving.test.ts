import { expect, it } from 'vitest';
import { judge } from '../../../infra/local/serving.ts';

const pools = ['aks-westeurope', 'eks-us-east-1'];

it('serves when every pool offers a model', () => {
  expect(
    judge(
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

it('says what is missing', () => {
  expect(judge({ data: [{ id: 'a', pools: ['aks-westeurope'] }] }, pools)).toContain('eks-us-east-1');
  expect(judge({ data: [] }, pools)).toContain('aks-westeurope');
  expect(judge('oops', pools)).toContain('something else');
});

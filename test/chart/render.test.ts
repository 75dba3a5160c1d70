import { describe, expect, it } from 'vitest';
import { CHART, example, examples, run, template } from './helm.ts';
import { helm, KUBERNETES, kubeconform, schemas } from './install.ts';

const LOCATION = `${schemas}/{{.ResourceKind}}-{{if ne .Group .ResourceAPIVersion}}{{.Group}}-{{end}}{{.ResourceAPIVersion}}.json`;
const check = (manifests: string) => run(kubeconform, ['-strict', '-summary', '-schema-location', LOCATION], manifests);

describe.each(examples)('the example %s', (name) => {
  it('passes helm lint', async () => {
    const { code, output } = await run(helm, [
      ...['lint', '--strict', '--kube-version', KUBERNETES, CHART],
      ...['-f', `${CHART}/examples/${name}.yaml`],
    ]);
    expect(code, output).toBe(0);
  });

  it('renders objects that Kubernetes accepts', async () => {
    const { output, errors } = await template(example(name));
    expect(errors).toBe('');
    const { code, output: report } = await check(output);
    expect(code, report).toBe(0);
    expect(report).toMatch(/Skipped: 0/);
  });
});

// Constants of Whisper's features, as its own code computes them (openai/whisper, audio.py; librosa's Slaney mel).

/** Samples of a window and between two of them, at 16 kHz; bands of the mel scale. */
export const WINDOW = 400;
export const HOP = 160;
export const FILTERS = 80;
const RATE = 16_000;

/** Cosines, then sines, of each frequency under a Hann window: [402, 400]. */
export function fourierBasis(): Float32Array {
  const rows = WINDOW / 2 + 1;
  const basis = new Float32Array(2 * rows * WINDOW);
  for (let row = 0; row < rows; row++) {
    for (let n = 0; n < WINDOW; n++) {
      const hann = 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / WINDOW);
      const angle = (2 * Math.PI * row * n) / WINDOW;
      basis[row * WINDOW + n] = Math.cos(angle) * hann;
      basis[(rows + row) * WINDOW + n] = -Math.sin(angle) * hann;
    }
  }
  return basis;
}

/** Linear below 1 kHz, logarithmic above. */
const LINEAR = 200 / 3;
const STEP = Math.log(6.4) / 27;
const toMel = (hertz: number) => (hertz < 1_000 ? hertz / LINEAR : 15 + Math.log(hertz / 1_000) / STEP);
const toHertz = (mel: number) => (mel < 15 ? LINEAR * mel : 1_000 * Math.exp(STEP * (mel - 15)));

/** Triangles of equal area: [80, 201]. */
export function melFilters(): Float32Array {
  const bins = WINDOW / 2 + 1;
  const edges = Array.from({ length: FILTERS + 2 }, (_, i) => toHertz((toMel(RATE / 2) * i) / (FILTERS + 1)));
  const filters = new Float32Array(FILTERS * bins);
  for (let band = 0; band < FILTERS; band++) {
    const [low, middle, high] = edges.slice(band, band + 3) as [number, number, number];
    for (let bin = 0; bin < bins; bin++) {
      const hertz = (RATE / 2 / (bins - 1)) * bin;
      const rise = Math.min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      filters[band * bins + bin] = (Math.max(0, rise) * 2) / (high - low);
    }
  }
  return filters;
}

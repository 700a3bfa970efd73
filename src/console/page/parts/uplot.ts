import Plot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export { Plot };

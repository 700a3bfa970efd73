import { render } from 'preact';
import { Shell } from './app/shell.js';
import { resume } from './data/session.js';
import { followTheme } from './data/theme.js';
import './style/base.css';
import './style/parts.css';
import './style/shell.css';

followTheme();
const root = document.getElementById('app');
if (root !== null) {
  render(<Shell />, root);
  void resume();
}

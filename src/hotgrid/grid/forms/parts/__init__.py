"""parts: fields, inputs, views and strokes of the cells that one rank stores."""

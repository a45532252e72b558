"""The two apps that Flower's commands run, and the records that it carries between them; needs Flower."""
